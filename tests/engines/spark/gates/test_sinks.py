"""Batches that only wait for their sinks, on a machine that is scripted."""

from pathlib import Path

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.sinks import SinkWatch, active_runs
from tests.waiting import eventually


class Machine:
    def __init__(self) -> None:
        self.active: set[str] = set()
        self.used_s = 0.0

    def watch(self) -> SinkWatch:
        return SinkWatch(lambda: self.active, 2, lambda: self.used_s)


def test_a_batch_without_a_job_beside_idle_cores_waits_for_its_sink() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.active = {"busy"}
    granted = {"sink": 0.0, "busy": 0.0, "young": 2.4}
    assert watch.look(granted, 1.5) == set()  # once may be between two jobs
    assert watch.look(granted, 2.0) == {"sink"}
    assert watch.look(granted, 2.5) == {"sink"}
    machine.active = {"sink"}  # it goes on
    assert watch.look(granted, 3.0) == set()


def test_on_a_full_machine_a_batch_without_a_job_may_be_planning() -> None:
    machine = Machine()
    watch = machine.watch()
    for step in range(6):
        machine.used_s += 0.95
        assert watch.look({"slow": 0.0}, 1.5 + 0.5 * step) == set()


def test_nobody_plans_for_ever() -> None:
    machine = Machine()
    watch = machine.watch()
    found = []
    for step in range(30):
        machine.used_s += 0.95
        found.append(watch.look({"slow": 0.0}, 1.5 + 0.5 * step))
    assert found[0] == set()
    assert found[-1] == {"slow"}


def test_who_has_come_back_waits_no_more() -> None:
    machine = Machine()
    watch = machine.watch()
    for now_s in (1.5, 2.0):
        watch.look({"sink": 0.0}, now_s)
    assert watch.look({}, 2.5) == set()
    assert watch.look({"sink": 2.6}, 3.0) == set()


@pytest.mark.spark
def test_the_group_of_a_job_that_runs_is_told(spark: SparkSession, tmp_path: Path) -> None:
    ask, go_on = active_runs(spark), tmp_path / "go on"
    assert "a run" not in ask()

    def run() -> None:
        spark.sparkContext.setJobGroup("a run", "waits for a file")
        wait = f"while [ ! -e '{go_on}' ]; do sleep 0.05; done"
        spark.sparkContext.parallelize([1], 1).pipe(f'sh -c "{wait}"').count()

    thread = InheritableThread(run)
    thread.start()
    try:
        eventually(lambda: "a run" in ask())
    finally:
        go_on.touch()
        thread.join()
    eventually(lambda: "a run" not in ask())
