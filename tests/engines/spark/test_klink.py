"""Klink on real Spark: results as ever, few batches a window, and it can be explained."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from slackwater.core.model import QueryMetrics
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.progress import ran_a_batch
from slackwater.ipc.client import ask
from slackwater.ipc.questions import AskStatus, Status
from slackwater.traffic import Traffic
from slackwater_bench.workloads.base import WindowRows, collect_windows, differences
from slackwater_bench.workloads.linear_road import LinearRoad
from slackwater_bench.workloads.ysb import Ysb
from tests.waiting import eventually

pytestmark = pytest.mark.spark

WINDOWS = 4


def traffic(seconds: float, rate: str = "400") -> Traffic:
    start_s = float(int(time.time()) + 3)
    return Traffic(start_s=start_s, stop_s=start_s + seconds, rate=rate, seed=5)


def start(fleet: Fleet, spark: SparkSession, name: str, workload: Ysb | LinearRoad) -> None:
    frame = workload.query(spark)
    if fleet.gate_kind == "source":
        frame = fleet.gate(frame, name)
    fleet.start(frame.writeStream.format("memory").outputMode("append"), name=name)


def expected(workload: Ysb | LinearRoad) -> WindowRows:
    """Of the windows that the stream's last event closes."""
    last_s = (workload.traffic.stop_s or 0.0) - workload.traffic.max_delay_s - 0.1
    first_us = round(workload.traffic.start_s * 1e6)
    return {
        end: rows for end, rows in workload.truth(first_us, round(last_s * 1e6)).items() if rows
    }


def seen(spark: SparkSession, name: str, workload: Ysb | LinearRoad) -> WindowRows:
    return collect_windows(spark.table(name), workload.columns)


@pytest.mark.parametrize(
    ("gate", "one_batch"), [("clock", "auto"), ("clock", "off"), ("source", "auto")]
)
def test_every_window_is_right_and_takes_few_batches(
    spark: SparkSession, make_fleet: Callable[..., Fleet], gate: str, one_batch: str
) -> None:
    fleet = make_fleet("klink", gate=gate, one_batch=one_batch)
    batches: dict[str, int] = {}

    def count(name: str, progress: dict[str, object]) -> None:
        batches[name] = batches.get(name, 0) + ran_a_batch(progress)

    fleet.on_progress(count)
    queries = {
        f"{gate}_{one_batch}{n}": Ysb(traffic=traffic(3 * WINDOWS + 2), phase_s=0.7 * n)
        for n in range(2)
    }
    for name, workload in queries.items():
        start(fleet, spark, name, workload)
    for name, workload in queries.items():
        wanted = expected(workload)
        eventually(lambda: seen(spark, name, workload).keys() >= wanted.keys(), 60)  # noqa: B023
        found = {end: rows for end, rows in seen(spark, name, workload).items() if end in wanted}
        assert differences(wanted, found) == []
        assert len(wanted) >= WINDOWS - 1
        # Stock Spark runs a batch as soon as the last has ended: ten times as many.
        assert batches[name] <= 4 * len(wanted) + 4
    stages = {(d["figures"] or {}).get("stage") for d in fleet.explain(last=200)}
    last = "sweep" if (gate, one_batch) == ("clock", "auto") else "emit"  # the source gate has two
    assert {"sweep", last} <= stages
    shown = next(d for d in fleet.explain(last=200) if (d["figures"] or {}).get("stage") == last)
    figures = shown["figures"]
    assert figures["arrival_low_s"] <= figures["arrival_s"] <= figures["arrival_high_s"]
    assert figures["window_end_s"] < figures["arrival_s"] < shown["at_s"] + 5


def test_a_join_is_swept_when_its_last_input_has_arrived(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("klink")
    road = LinearRoad(traffic=traffic(14, rate="600"), cars=100)
    start(fleet, spark, "tolls", road)
    wanted = expected(road)
    eventually(lambda: seen(spark, "tolls", road).keys() >= wanted.keys(), 90)
    found = {end: rows for end, rows in seen(spark, "tolls", road).items() if end in wanted}
    assert wanted
    assert differences(wanted, found) == []


def test_the_watermarks_of_all_inputs_are_seen(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("klink")
    times = traffic(60)
    sides = [Ysb(traffic=replace(times, seed=seed), campaigns=5).query(spark) for seed in (1, 2)]
    left, right = (side.withColumnRenamed("count", f"n{i}") for i, side in enumerate(sides))
    window = ["window_start", "window_end", "campaign_id"]
    joined = left.select(*window, "n0").join(right.select(*window, "n1"), window)
    fleet.start(joined.writeStream.format("noop").outputMode("append"), name="both")

    def metrics() -> QueryMetrics:
        return ask(fleet.socket, AskStatus(), Status).queries[0].metrics

    eventually(lambda: len(metrics().input_watermarks_s) == 2, 60)
    known = metrics()
    assert known.next_watermark_s == min(known.input_watermarks_s)


def test_update_mode_needs_no_emit(spark: SparkSession, make_fleet: Callable[..., Fleet]) -> None:
    fleet = make_fleet("klink")
    ysb = Ysb(traffic=traffic(10))
    writer = ysb.query(spark).writeStream.format("memory").outputMode("update")
    fleet.start(writer, name="updates")
    eventually(lambda: fleet.status().queries[0].batches >= 4, 60)
    record = fleet._registry.get("updates")
    assert record is not None
    assert record.spec.deadlines.output_mode == "update"
    stages = {(d["figures"] or {}).get("stage") for d in fleet.explain(last=200)}
    assert "refresh" in stages
    assert "emit" not in stages


def test_memory_is_known_to_the_controller(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("klink")
    eventually(lambda: ask(fleet.socket, AskStatus(), Status).memory is not None, 10)
    memory = ask(fleet.socket, AskStatus(), Status).memory
    assert memory is not None
    assert 0 < memory.used_bytes < memory.limit_bytes
