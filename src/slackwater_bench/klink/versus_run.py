"""Runs the queries of one arm, Kafka to Kafka in update mode, and judges what they wrote."""

import json
from collections import Counter
from contextlib import ExitStack
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.common.procfs import CpuMeter
from slackwater.core.clock import RealClock, sleep_until
from slackwater.core.errors import EngineError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.session.session import session
from slackwater_bench.kafka_broker import connector_jars
from slackwater_bench.kafka_traffic import kafka_traffic
from slackwater_bench.klink.versus import PLAIN, REAL_TIME, VersusTrial
from slackwater_bench.trial import Result
from slackwater_bench.workloads.base import Workload

_SLOTS_EACH = 3  # Real-Time Mode has all tasks of a query run at once
_DRAIN_S = 5.0  # for the counts of the last windows
_ANSWER_S = 30.0
_STATE = "spark.sql.streaming.stateStore"

Written = list[tuple[float, int, str, int]]  # when, window end in µs, campaign, count


def run(trial: VersusTrial) -> Result:
    """Run the trial."""
    clock = RealClock()
    conf = {"spark.jars": ",".join(connector_jars()), "spark.sql.shuffle.partitions": "1"}
    master = None
    if trial.arm == REAL_TIME:
        master = f"local[{_SLOTS_EACH * trial.queries}]"
        conf |= {
            f"{_STATE}.providerClass": (
                "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
            ),
            f"{_STATE}.checkpointFormatVersion": "2",
        }
    with ExitStack() as stack:
        topics = stack.enter_context(kafka_traffic())
        checkpoints = stack.enter_context(TemporaryDirectory(prefix="slackwater-bench-"))
        profile = "stock" if trial.arm in (REAL_TIME, PLAIN) else "tuned"
        spark = session("slackwater-bench", master, profile, conf)
        spark.sparkContext.setLogLevel("ERROR")
        start_s = float(round(clock.now() + 5 + trial.queries))
        workloads = trial.fleet.workloads(start_s)
        feeds = {name: workload.feed_options() for name, workload in workloads.items()}
        topics.start(feeds)
        make_topics(topics.address, [_out(name) for name in workloads])
        fleet = None
        if trial.arm not in (REAL_TIME, PLAIN):
            fleet = stack.enter_context(Fleet(spark, trial.arm))
        for name, workload in workloads.items():
            rows = workload.query(spark, events=topics.events(spark, name, feeds[name]))
            end = F.unix_micros("window_end").alias("end")
            value = F.to_json(F.struct(end, *workload.columns)).alias("value")
            writer = rows.select(value).writeStream.format("kafka").outputMode("update")
            writer = writer.option("kafka.bootstrap.servers", topics.address)
            writer = writer.option("checkpointLocation", f"{checkpoints}/{name}")
            _start(trial, fleet, writer.option("topic", _out(name)).queryName(name), name)
        begin_s = max(start_s, clock.now()) + trial.warmup_s
        meter = CpuMeter()
        sleep_until(begin_s, clock)
        cpu_s, source = meter.read(), topics.cpu_s()
        sleep_until(begin_s + trial.seconds, clock)
        cpu_s = meter.read() - cpu_s
        source = {name: used - source[name] for name, used in topics.cpu_s().items()}
        sleep_until(begin_s + trial.seconds + _DRAIN_S, clock)
        for query in spark.streams.active:
            if (error := query.exception()) is not None:
                raise EngineError(str(error))
        found = {name: written(topics.address, _out(name)) for name in workloads}
    judged = [
        _judge(workloads[name], rows, begin_s, begin_s + trial.seconds)
        for name, rows in found.items()
    ]
    sums: Counter[str] = Counter()
    for each in judged:
        sums.update({key: each[key] for key in ("expected", "emitted", "wrong", "rows_written")})
    return {
        "seconds": trial.seconds,
        "latencies_s": [value for each in judged for value in each["latencies_s"]],
        **sums,
        "cpu_s": round(cpu_s, 3),
        "source_cpu_s": {name: round(used, 3) for name, used in source.items()},
    }


def _start(trial: VersusTrial, fleet: Fleet | None, writer: DataStreamWriter, name: str) -> None:
    if trial.arm == REAL_TIME:
        every = f"{trial.batch_s:g} seconds"
        writer.trigger(realTime=every).start()  # type: ignore[call-overload]  # PySpark's slip
    elif fleet is None:
        writer.start()
    else:
        fleet.start(writer, name=name, target=trial.target_s)


def make_topics(address: str, names: list[str]) -> None:
    """Make topics whose rows have the time at which the broker took them."""
    settings = {"message.timestamp.type": "LogAppendTime"}
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(n, 1, 1, config=settings) for n in names]).values():
        made.result(_ANSWER_S)


def written(address: str, topic: str) -> Written:
    """Return all results of a topic in their order."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "judge", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: Written = []
    while True:
        message = consumer.poll(_ANSWER_S)
        if message is None:
            raise EngineError(f"the Kafka broker does not give the results of {topic}")
        error = message.error()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise EngineError(str(error))
            consumer.close()
            return found
        row = json.loads(message.value() or b"")
        at_s = message.timestamp()[1] / 1000
        found.append((at_s, row["end"], row["campaign_id"], row["count"]))


def _judge(workload: Workload, rows: Written, first_s: float, last_s: float) -> dict[str, Any]:
    """Find when the counts of each window stood."""
    truth = workload.truth(round(first_s * 1e6), round(last_s * 1e6))
    stands: dict[int, dict[str, tuple[float, int]]] = {}
    for at_s, end, campaign, count in rows:
        groups = stands.setdefault(end, {})
        if campaign not in groups or groups[campaign][1] != count:
            groups[campaign] = at_s, count
    latencies, emitted, wrong = [], 0, 0
    for end, wanted in truth.items():
        groups = stands.get(end, {})
        emitted += bool(groups)
        if Counter((name, count) for name, (_, count) in groups.items()) != wanted:
            wrong += 1
        elif groups:
            latencies.append(round(max(at_s for at_s, _ in groups.values()) - end / 1e6, 3))
    return {
        "expected": sum(1 for wanted in truth.values() if wanted),
        "emitted": emitted,
        "wrong": wrong,
        "latencies_s": latencies,
        "rows_written": sum(first_s < at_s <= last_s for at_s, *_ in rows),
    }


def _out(name: str) -> str:
    return f"out-{name}"
