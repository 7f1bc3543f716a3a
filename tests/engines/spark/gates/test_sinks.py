"""Batches that only wait for their sinks, on a machine that is scripted."""

from pathlib import Path

import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.sinks import PLANNED_S, SinkWatch, active_runs
from tests.waiting import eventually


class Driver:
    """Scripted: which runs have a job, and the CPU time of each run's own thread."""

    def __init__(self) -> None:
        self.active: set[str] = set()
        self.used_s: dict[str, float | None] = {}

    def watch(self) -> SinkWatch:
        return SinkWatch(lambda: self.active, lambda run: self.used_s.get(run, 0.0))


def test_a_batch_without_a_job_whose_thread_rests_waits_for_its_sink() -> None:
    driver = Driver()
    watch = driver.watch()
    driver.active = {"busy"}
    granted = {"sink": 0.0, "busy": 0.0, "young": 2.4}
    assert watch.look(granted, 1.5) == set()  # once may be between two jobs
    assert watch.look(granted, 2.0) == {"sink"}
    assert watch.look(granted, 2.5) == {"sink"}
    driver.active = {"sink"}  # it goes on
    assert watch.look(granted, 3.0) == set()


def test_a_batch_without_a_job_whose_thread_works_is_planning() -> None:
    """On a full machine it gets little of a core, but some."""
    driver = Driver()
    watch = driver.watch()
    for step in range(60):
        driver.used_s["slow"] = 0.05 * step
        assert watch.look({"slow": 0.0}, 1.5 + 0.5 * step) == set()


def test_a_batch_that_rests_after_planning_waits_for_its_sink() -> None:
    driver = Driver()
    watch = driver.watch()
    for step in range(4):
        driver.used_s["slow"] = 0.05 * step
        assert watch.look({"slow": 0.0}, 1.5 + 0.5 * step) == set()
    assert watch.look({"slow": 0.0}, 3.5) == {"slow"}
    driver.used_s["slow"] = 0.3  # it writes what its sink has answered: it is about to end
    assert watch.look({"slow": 0.0}, 4.0) == {"slow"}


def test_of_a_thread_that_shows_nothing_nobody_says_that_it_rests() -> None:
    driver = Driver()
    watch = driver.watch()
    driver.used_s["hidden"] = None
    assert not any(watch.look({"hidden": 0.0}, 1.5 + 0.5 * step) for step in range(10))
    assert watch.look({"hidden": 0.0}, 1.5 + PLANNED_S) == {"hidden"}  # nobody plans for so long


def test_who_has_come_back_waits_no_more() -> None:
    watch = Driver().watch()
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


def test_beside_jobs_of_nobody_known_a_batch_is_believed_to_work_for_longer() -> None:
    """They may be its own: of a `foreachBatch` that starts them in other threads."""
    driver = Driver()
    watch = driver.watch()
    driver.active = {""}
    assert not any(watch.look({"threads": 0.0}, 1.5 + 0.5 * step) for step in range(10))
    assert watch.look({"threads": 0.0}, 1.5 + PLANNED_S) == {"threads"}
