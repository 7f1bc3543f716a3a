"""Flink's way: a job for each query, in SQL."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from slackwater.core.errors import EngineError
from slackwater.engines.outside.http import Endpoint
from slackwater_bench.flink import LocalFlink, SqlClient, kafka_connector
from slackwater_bench.kafka_traffic import KafkaTraffic
from slackwater_bench.versus.ad_views import AdViews
from slackwater_bench.versus.engine import Engine
from slackwater_bench.versus.results import topic_of
from slackwater_bench.workloads.flink_sql import options_text

_RUNS = frozenset(("CREATED", "INITIALIZING", "RUNNING"))


class FlinkEngine(Engine):
    """A JobManager, and a TaskManager with a slot for each query."""

    def __enter__(self) -> Self:
        self._jobs: dict[str, str] = {}
        self._jars = [kafka_connector()]
        self._flink = LocalFlink(slots=self.trial.queries, jars=self._jars).__enter__()
        return self

    def start(self, workloads: Mapping[str, AdViews], topics: KafkaTraffic) -> None:
        with SqlClient(self._flink.rest, jars=self._jars) as client:
            for name, workload in workloads.items():
                conf = {
                    "table.local-time-zone": "UTC",
                    "execution.checkpointing.interval": f"{self.trial.checkpoint_s:g} s",
                    "execution.checkpointing.dir": (self.folder / name).as_uri(),
                }
                statements = ad_views_statements(name, workload, topics.address)
                self._jobs[name] = client.submit(name, statements, conf, chaining=True)

    def check(self) -> None:
        endpoint = Endpoint(self._flink.rest)
        try:
            for name, job in self._jobs.items():
                state = endpoint.json(f"/jobs/{job}")["state"]
                if state not in _RUNS:
                    told = endpoint.json(f"/jobs/{job}/exceptions").get("root-exception") or ""
                    why = [line for line in told.splitlines() if "Caused by" in line][-1:]
                    raise EngineError(f"{name} is {state}: {''.join(why)[:300]}")
        finally:
            endpoint.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._flink.__exit__(kind, error, trace)


def ad_views_statements(name: str, workload: AdViews, address: str) -> list[str]:
    """Return the query in Flink's SQL, from its topic to that of its results."""
    kafka = {"connector": "kafka", "properties.bootstrap.servers": address, "format": "json"}
    events = kafka | {"topic": name, "scan.startup.mode": "earliest-offset"}
    results = kafka | {"topic": topic_of(name), "json.timestamp-format.standard": "ISO-8601"}
    size, phase = (
        f"INTERVAL '{seconds:.3f}' SECOND" for seconds in (workload.window_s, workload.phase_s)
    )
    late = f"INTERVAL '{workload.watermark_ms / 1000:.3f}' SECOND"
    return [
        "CREATE TABLE events (ad_id STRING, event_type STRING, "
        "event_time TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, "
        f"WATERMARK FOR event_time AS event_time - {late}) WITH ({options_text(events)})",
        "CREATE TABLE results (window_end TIMESTAMP_LTZ(3), ad_id STRING, `count` BIGINT) "
        f"WITH ({options_text(results)})",
        "INSERT INTO results SELECT CAST(window_end AS TIMESTAMP_LTZ(3)), ad_id, COUNT(*) "
        "FROM TABLE(TUMBLE("
        "DATA => (SELECT * FROM events WHERE event_type = 'view'), "
        f"TIMECOL => DESCRIPTOR(event_time), SIZE => {size}, `OFFSET` => {phase})) "
        "GROUP BY window_start, window_end, ad_id",
    ]
