"""Spark's ways: a fleet under Klink, Real-Time Mode, micro-batches one after another."""

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.core.errors import EngineError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.session.session import session
from slackwater_bench.kafka_broker import connector_jars
from slackwater_bench.kafka_traffic import KafkaTraffic
from slackwater_bench.versus.ad_views import AdViews
from slackwater_bench.versus.engine import Engine
from slackwater_bench.versus.results import topic_of
from slackwater_bench.versus.trial import KLINK, KLINK_UPDATE, REAL_TIME

_TASKS = 2  # of a query: one reads its partition, one counts


class SparkEngine(Engine):
    """A session, and a fleet where the arm is Klink."""

    def __enter__(self) -> Self:
        trial = self.trial
        fleet = trial.arm in (KLINK, KLINK_UPDATE)
        # In Real-Time Mode all tasks of all queries run all the time, each in a slot.
        master = f"local[{_TASKS * trial.queries}]" if trial.arm == REAL_TIME else None
        conf = {"spark.jars": ",".join(connector_jars()), "spark.sql.shuffle.partitions": "1"}
        self._spark = session("slackwater-bench", master, "tuned" if fleet else "stock", conf)
        self._spark.sparkContext.setLogLevel("ERROR")
        self._queries: list[StreamingQuery] = []
        self._stack = ExitStack()
        self._stack.callback(self._spark.stop)
        self._fleet = self._stack.enter_context(Fleet(self._spark, KLINK)) if fleet else None
        return self

    def start(self, workloads: Mapping[str, AdViews], topics: KafkaTraffic) -> None:
        for name, workload in workloads.items():
            self._start(name, workload, topics)

    def _start(self, name: str, workload: AdViews, topics: KafkaTraffic) -> None:
        trial = self.trial
        rows = workload.query(
            self._spark, events=topics.events(self._spark, name, workload.feed_options())
        )
        value = F.to_json(F.struct("window_end", *workload.columns)).alias("value")
        writer = (
            rows.select(value)
            .writeStream.format("kafka")
            .outputMode("update" if trial.updates else "append")
            .option("kafka.bootstrap.servers", topics.address)
            .option("topic", topic_of(name))
            .option("checkpointLocation", str(self.folder / name))
        )
        if self._fleet is not None:
            target = trial.target_s if trial.arm == KLINK_UPDATE else None
            self._queries.append(self._fleet.start(writer, name=name, target=target))
            return
        writer = writer.queryName(name)
        if trial.arm == REAL_TIME:
            every = f"{trial.checkpoint_s:g} seconds"
            writer = writer.trigger(realTime=every)  # type: ignore[call-overload]  # PySpark's slip
        self._queries.append(writer.start())

    def check(self) -> None:
        if self._fleet is not None and self._fleet.failures:
            raise EngineError(f"queries failed: {self._fleet.failures}")
        for query in self._queries:
            if (error := query.exception()) is not None:
                raise EngineError(f"{query.name} failed: {' '.join(str(error).split())[:300]}")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._spark.sparkContext.setLogLevel("OFF")  # stopping interrupts tasks; that is no error
        with self._stack:
            if self._fleet is None:
                for query in self._queries:
                    query.stop()
