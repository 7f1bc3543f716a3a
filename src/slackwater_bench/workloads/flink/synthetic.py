"""Synthetic pipelines in Flink's SQL."""

from slackwater_bench.workloads.flink.numbers import number_source, result_sink
from slackwater_bench.workloads.synthetic import WIDTH, Synthetic


def statements(query: Synthetic, rate: int, rows: int | None = None) -> list[str]:
    """Source, sink and the query.

    Parameters
    ----------
    query
        What to compute; without blocking, because Flink's SQL has no function that blocks.
    rate
        Rows per second that the source makes.
    rows
        Only the rows numbered from zero to this, and a sink that prints; otherwise random numbers
        without end, and results go nowhere.
    """
    # Rows are as long as what the operators hand on: a queue holds as many wherever it is.
    source = number_source(rate, rows, ", payload VARCHAR", fields__payload__length=str(WIDTH))
    sink = result_sink({"id": "BIGINT", "size": "BIGINT"}, rows is not None)
    return [source, sink, _insert(query)]


def _insert(query: Synthetic) -> str:
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
    return f"INSERT INTO results SELECT id, CHAR_LENGTH(p) FROM ({inner}) WHERE r >= 0"
