"""Workloads in Flink's SQL: statements that are submitted as they are, without a compile step.

Each has a source, a sink, perhaps views, and the query. With ``rows`` only the rows numbered from
zero to this are read, and a sink prints; otherwise they are random numbers without end, and
results go nowhere.
"""

from slackwater.core.errors import UsageError
from slackwater_bench.workloads.riot_etl import RiotEtl
from slackwater_bench.workloads.road_reports import (
    FREE_SPEED,
    STEP_MS,
    STOPPED_FOR,
    WINDOW_MS,
    RoadReports,
)
from slackwater_bench.workloads.synthetic import WIDTH, Synthetic

NAMES = ("synthetic", "etl", "linear-road")


def flink_query(
    workload: str, number: int, rate: int, seed: int, work: int
) -> tuple[str, list[str]]:
    """Return the name and the statements of one query of a workload.

    Parameters
    ----------
    number, seed
        Which query, of which fleet.
    rate
        Rows per second that its source makes.
    work
        Mean cost of a synthetic operator.
    """
    if workload == "synthetic":
        synthetic = Synthetic(number=number, seed=seed, work=work)
        return synthetic.name, synthetic_statements(synthetic, rate)
    if workload == "etl":
        etl = RiotEtl(number=number, seed=seed)
        return etl.name, etl_statements(etl, rate)
    if workload == "linear-road":
        road = RoadReports(number=number, seed=seed)
        return road.name, linear_road_statements(road, rate)
    raise UsageError(f"{workload} is not written for Flink; these are: {', '.join(NAMES)}")


def synthetic_statements(query: Synthetic, rate: int, rows: int | None = None) -> list[str]:
    """Return a synthetic pipeline; without blocking: Flink's SQL has no function that blocks."""
    # Rows are as long as what the operators hand on: a queue holds as many wherever it is.
    source = number_source(rate, rows, ", payload VARCHAR", fields__payload__length=str(WIDTH))
    sink = result_sink({"id": "BIGINT", "size": "BIGINT"}, rows is not None)
    inner = "SELECT id, payload p, RAND() r FROM events"
    for stage in query.stages:
        # The random column is used in the filter and in the projection: so the planner may not fold
        # one operator into the next, and each keeps a thread of its own.
        text = f"REPEAT(CONCAT(p, CAST(r AS VARCHAR)), {stage.work})"
        inner = (
            f"SELECT id, RPAD(SHA512({text}), {WIDTH}, '-') p, RAND() r "
            f"FROM ({inner}) WHERE r >= 0 "
            f"AND MOD(id + {stage.offset}, {stage.modulus}) < {stage.keep}"
        )
    insert = f"INSERT INTO results SELECT id, CHAR_LENGTH(p) FROM ({inner}) WHERE r >= 0"
    return [source, sink, insert]


def etl_statements(query: RiotEtl, rate: int, rows: int | None = None) -> list[str]:
    """Return RIoTBench's ETL."""
    columns = {"id": "BIGINT", "sensor": "BIGINT", "v": "DOUBLE", "zone": "VARCHAR"}
    inner = "SELECT id, RAND() r FROM events"
    for step in query.steps("CAST({} AS VARCHAR)", "JSON_VALUE(message, '$.{}')"):
        # The random column keeps each operator apart from the next, as in the synthetic queries.
        kept = f"{step.columns}, r * RAND() r"
        inner = f"SELECT {kept} FROM ({inner}) WHERE r >= 0 AND ({step.where})"
    insert = f"INSERT INTO results SELECT id, sensor, v, zone FROM ({inner}) WHERE r >= 0"
    return [number_source(rate, rows), result_sink(columns, rows is not None), insert]


def linear_road_statements(query: RoadReports, rate: int, rows: int | None = None) -> list[str]:
    """Return Linear Road's toll part; without ``rows`` event time is the clock's."""
    columns = "".join(f", {name} AS {text}" for name, text in query.columns().items())
    if rows is None:
        time = "CAST(CURRENT_ROW_TIMESTAMP() AS TIMESTAMP(3))"
    else:
        time = f"CAST(TO_TIMESTAMP_LTZ(id * {STEP_MS}, 3) AS TIMESTAMP(3))"
    return [
        number_source(rate, rows, f"{columns}, ts AS {time}, WATERMARK FOR ts AS ts"),
        result_sink({"w": "BIGINT", "seg": "BIGINT", "toll": "BIGINT"}, rows is not None),
        _windowed("speeds", "SUM(speed) / COUNT(*) AS mean_speed"),
        _windowed("accidents", "SUM(CASE WHEN speed = 0 THEN 1 ELSE 0 END) AS stopped"),
        "INSERT INTO results SELECT UNIX_TIMESTAMP(CAST(s.window_start AS VARCHAR)) * 1000 / "
        f"{WINDOW_MS}, s.seg, 2 * ({FREE_SPEED} - s.mean_speed) * ({FREE_SPEED} - s.mean_speed) "
        "FROM speeds s JOIN accidents a "
        "ON s.window_start = a.window_start AND s.window_end = a.window_end AND s.seg = a.seg "
        f"WHERE s.mean_speed < {FREE_SPEED} AND a.stopped < {STOPPED_FOR}",
    ]


def _windowed(name: str, column: str) -> str:
    size = f"INTERVAL '{WINDOW_MS // 1000}' SECOND"
    return (
        f"CREATE VIEW {name} AS SELECT window_start, window_end, seg, {column} "
        f"FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), {size})) "
        "GROUP BY window_start, window_end, seg"
    )


def number_source(rate: int, rows: int | None, more: str = "", **options: str) -> str:
    """Return rows with a column ``id``: random without end, or those below ``rows`` in order.

    Parameters
    ----------
    rate
        Rows per second.
    more
        Definitions of further columns, each with a comma before it.
    options
        Of the generator, with two underscores for a dot and one for a hyphen.
    """
    settings = {"connector": "datagen", "rows-per-second": str(rate)}
    if rows is None:
        settings |= {"fields.id.min": "0", "fields.id.max": "1000000000"}
    else:
        settings |= {"fields.id.kind": "sequence", "fields.id.start": "0"}
        settings |= {"fields.id.end": str(rows - 1)}
    settings |= {k.replace("__", ".").replace("_", "-"): v for k, v in options.items()}
    return f"CREATE TABLE events (id BIGINT{more}) WITH ({options_text(settings)})"


def result_sink(columns: dict[str, str], printing: bool) -> str:
    """Return a table that prints what it gets, or forgets it."""
    connector = "print" if printing else "blackhole"
    definitions = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return f"CREATE TABLE results ({definitions}) WITH ('connector' = '{connector}')"


def options_text(options: dict[str, str]) -> str:
    """Write options as they stand in a ``WITH`` clause.

    >>> options_text({"connector": "datagen", "rows-per-second": "5"})
    "'connector' = 'datagen', 'rows-per-second' = '5'"
    """
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
