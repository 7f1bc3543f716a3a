"""RIoTBench's ETL in Flink's SQL."""

from slackwater_bench.workloads.flink.numbers import number_source, result_sink
from slackwater_bench.workloads.riot_etl import RiotEtl


def statements(query: RiotEtl, rate: int, rows: int | None = None) -> list[str]:
    """Source, sink and the query, as in :mod:`slackwater_bench.workloads.flink.synthetic`."""
    columns = {"id": "BIGINT", "sensor": "BIGINT", "v": "DOUBLE", "zone": "VARCHAR"}
    return [number_source(rate, rows), result_sink(columns, rows is not None), _insert(query)]


def _insert(query: RiotEtl) -> str:
    inner = "SELECT id, RAND() r FROM events"
    for step in query.steps("CAST({} AS VARCHAR)", "JSON_VALUE(message, '$.{}')"):
        # The random column keeps each operator apart from the next, as in the synthetic queries.
        columns = f"{step.columns}, r * RAND() r"
        inner = f"SELECT {columns} FROM ({inner}) WHERE r >= 0 AND ({step.where})"
    return f"INSERT INTO results SELECT id, sensor, v, zone FROM ({inner}) WHERE r >= 0"
