"""Linear Road's toll part in Flink's SQL."""

from slackwater_bench.workloads.flink.numbers import number_source, result_sink
from slackwater_bench.workloads.road_reports import (
    FREE_SPEED,
    STEP_MS,
    STOPPED_FOR,
    WINDOW_MS,
    RoadReports,
)


def statements(query: RoadReports, rate: int, rows: int | None = None) -> list[str]:
    """Source, sink, views and the query; without ``rows`` event time is the clock's."""
    return [
        _source(query, rate, rows),
        result_sink({"w": "BIGINT", "seg": "BIGINT", "toll": "BIGINT"}, rows is not None),
        _windowed("speeds", "SUM(speed) / COUNT(*) AS mean_speed"),
        _windowed("accidents", "SUM(CASE WHEN speed = 0 THEN 1 ELSE 0 END) AS stopped"),
        "INSERT INTO results SELECT UNIX_TIMESTAMP(CAST(s.window_start AS VARCHAR)) * 1000 / "
        f"{WINDOW_MS}, s.seg, 2 * ({FREE_SPEED} - s.mean_speed) * ({FREE_SPEED} - s.mean_speed) "
        "FROM speeds s JOIN accidents a "
        "ON s.window_start = a.window_start AND s.window_end = a.window_end AND s.seg = a.seg "
        f"WHERE s.mean_speed < {FREE_SPEED} AND a.stopped < {STOPPED_FOR}",
    ]


def _source(query: RoadReports, rate: int, rows: int | None) -> str:
    columns = "".join(f", {name} AS {text}" for name, text in query.columns().items())
    if rows is None:
        time = "CAST(CURRENT_ROW_TIMESTAMP() AS TIMESTAMP(3))"
    else:
        time = f"CAST(TO_TIMESTAMP_LTZ(id * {STEP_MS}, 3) AS TIMESTAMP(3))"
    mark = f", ts AS {time}, WATERMARK FOR ts AS ts"
    return number_source(rate, rows, columns + mark)


def _windowed(name: str, column: str) -> str:
    size = f"INTERVAL '{WINDOW_MS // 1000}' SECOND"
    return (
        f"CREATE VIEW {name} AS SELECT window_start, window_end, seg, {column} "
        f"FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), {size})) "
        "GROUP BY window_start, window_end, seg"
    )
