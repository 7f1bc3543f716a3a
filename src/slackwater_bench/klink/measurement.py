"""Runs one trial of a policy and judges every window of it."""

from contextlib import ExitStack

from pyspark.sql import SparkSession

from slackwater import policies
from slackwater.common.procfs import CpuMeter, thread_cpu
from slackwater.core.clock import RealClock, sleep_until
from slackwater.core.protocols import Clock
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.progress import instant_s
from slackwater.engines.spark.session.session import session
from slackwater_bench.fleet_measurement import FleetMeasurement
from slackwater_bench.kafka_broker import connector_jars
from slackwater_bench.kafka_traffic import KafkaTraffic, kafka_traffic
from slackwater_bench.klink.judge import Judge
from slackwater_bench.klink.trial import DRAIN_LIMIT_S, START_LIMIT_S, PolicyTrial
from slackwater_bench.resources import cpu_by_group, driver_heap, driver_share, sample
from slackwater_bench.trial import Result
from slackwater_bench.workloads.base import Workload

_POOL = "spark.scheduler.pool"
_NEVER = "1970-01-01T00:00:00Z"


def run(trial: PolicyTrial) -> Result:
    """Run the trial and judge its results."""
    parameters = dict(trial.parameters)
    if trial.policy in policies.names():  # a user's own may not take a seed
        parameters = {"seed": trial.seed} | parameters
    gated = policies.load(trial.policy, **parameters).gated
    conf = {"spark.sql.shuffle.partitions": str(trial.shuffle_partitions)}
    if trial.heap:
        conf["spark.driver.memory"] = trial.heap
    if trial.fair:
        conf["spark.scheduler.mode"] = "FAIR"
    with ExitStack() as stack:
        topics = None
        if trial.source == "kafka":
            topics = stack.enter_context(kafka_traffic())
            conf["spark.jars"] = ",".join(connector_jars())
        spark = session("slackwater-bench", trial.master, trial.profile, conf)
        spark.sparkContext.setLogLevel("ERROR")
        fleet = Fleet(
            spark,
            trial.policy,
            slots=trial.slots,
            gate=trial.gate if gated else "none",  # type: ignore[arg-type]
            controller=trial.controller,  # type: ignore[arg-type]
            parameters=parameters,
            one_batch=trial.one_batch,  # type: ignore[arg-type]
        )
        stack.enter_context(fleet)
        return Measurement(trial, spark, fleet, topics).result()


class Measurement(FleetMeasurement[Workload]):
    """Starts the queries of a trial, waits, stops them, and has every window judged."""

    def __init__(
        self,
        trial: PolicyTrial,
        spark: SparkSession,
        fleet: Fleet,
        topics: KafkaTraffic | None = None,
        clock: Clock = RealClock(),
    ) -> None:
        self.trial = trial
        self._topics = topics  # None: the queries read feeds
        # Traffic begins when all queries should be up, so that none starts with a backlog.
        ahead_s = -trial.backlog_s if trial.backlog_s else 5 + trial.queries
        start_s = float(round(clock.now() + ahead_s))
        workloads = trial.workloads(start_s)
        super().__init__(spark, fleet, workloads, start_s, START_LIMIT_S, DRAIN_LIMIT_S, clock)
        if topics is not None:
            topics.start({name: workload.feed_options() for name, workload in workloads.items()})

    def result(self) -> Result:
        """Run the trial."""
        trial = self.trial
        first_s = self.start_s if trial.backlog_s else None
        found = self._run(trial.warmup_s, trial.seconds, first_s)
        return found | ({} if self._topics is None else {"late_s": self._topics.stop()})

    def _measure(self) -> Result:
        begin_s = self.last_s - self.trial.seconds
        meter, heap = CpuMeter(), driver_heap(self.spark)
        sleep_until(begin_s, self.clock)
        jvm = int(self.spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
        cpu, controller = meter.read(), self.fleet.controller_cpu_s()
        threads, source = thread_cpu(jvm), self._source_cpu_s()
        samples = sample(begin_s, self.last_s, meter.read, heap)
        cpu, controller = meter.read() - cpu, self.fleet.controller_cpu_s() - controller
        share = driver_share(cpu_by_group(threads, thread_cpu(jvm)))
        return {
            "seconds": self.trial.seconds,
            "cpu_s": round(cpu, 3),
            "controller_cpu_s": round(controller, 4),
            "driver_share": round(share, 4),
            "source_cpu_s": {
                name: round(used - source[name], 3) for name, used in self._source_cpu_s().items()
            },
            "samples": samples,
        }

    def _source_cpu_s(self) -> dict[str, float]:
        """Return CPU seconds so far of processes that only bring the events."""
        return {} if self._topics is None else self._topics.cpu_s()

    def _start(self, name: str, workload: Workload) -> None:
        events = None
        if self._topics is not None:
            events = self._topics.events(self.spark, name, workload.feed_options())
        frame = workload.query(self.spark, events=events)
        if self.fleet.gate_kind == "source":
            frame = self.fleet.gate(frame, name)
        writer = frame.writeStream.format("memory").outputMode("append")
        if self.trial.trigger_s is not None:
            milliseconds = round(self.trial.trigger_s * 1000)
            writer = writer.trigger(processingTime=f"{milliseconds} milliseconds")
        if not self.trial.fair:
            self.fleet.start(writer, name=name)
            return
        # The query's thread inherits the property from the thread that starts it.
        self.spark.sparkContext.setLocalProperty(_POOL, name)
        try:
            self.fleet.start(writer, name=name)
        finally:
            self.spark.sparkContext.setLocalProperty(_POOL, None)  # type: ignore[arg-type]

    def _passed(self, name: str, end_us: int) -> bool:
        """Tell whether the watermark of a query has passed the window."""
        if not self.batches[name]:
            return False
        progress = self.batches[name][-1]
        watermark = progress.get("eventTime", {}).get("watermark", _NEVER)
        return instant_s(watermark) >= end_us / 1e6

    def _judge(self) -> Result:
        judge = Judge(self.first_s, self.last_s, asking=self.fleet.gate_kind != "source")
        for name, workload in self.workloads.items():
            judge.take(workload, self.spark.table(name).toArrow(), self.batches[name])
        return judge.verdict()
