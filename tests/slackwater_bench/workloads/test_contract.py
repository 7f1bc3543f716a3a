"""Every workload passes the public checks, and so does one of a stranger; a wrong one does not."""

from collections import Counter

import pytest
from examples.door_counts import DoorCounts
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from slackwater.core.errors import UsageError
from slackwater_bench import comparison
from slackwater_bench.commands import bench
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.testing import check_results, check_workload
from slackwater_bench.workloads.base import Rows
from slackwater_bench.workloads.catalog import WORKLOADS, workload_class
from tests.slackwater_bench.klink.test_comparison import outcome

OWN = "examples.door_counts:DoorCounts"


@pytest.mark.parametrize("name", [*WORKLOADS, OWN])
def test_every_workload(name: str) -> None:
    check_workload(workload_class(name))


@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name in [*WORKLOADS, OWN] if name != "kmeans"])
def test_spark_gives_what_the_truth_says(spark: SparkSession, name: str) -> None:
    """But for k-means, whose centres are compared by what they leave over."""
    check_results(workload_class(name), spark)


class Forgetful(DoorCounts):
    """Forgets a column of its results."""

    def _truth_of(self, end_us: int) -> Rows:
        return Counter([row[:1] for row in super()._truth_of(end_us)])


def test_a_wrong_one_is_told() -> None:
    with pytest.raises(AssertionError, match="a row of the truth is not like"):
        check_workload(Forgetful)


def test_one_of_your_own_works_wherever_a_name_does(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[PolicyTrial] = []

    def run(trial: PolicyTrial) -> dict[str, object]:
        seen.append(trial)
        return outcome()

    monkeypatch.setattr(comparison, "run_in_process", run)
    done = CliRunner().invoke(bench, [OWN, "--policies", "fcfs", "--option", "doors=3"])
    assert done.exit_code == 0, done.output
    (trial,) = seen
    assert (trial.workload, trial.window_s, trial.options) == (OWN, 5.0, {"doors": 3})


@pytest.mark.parametrize(
    ("name", "message"),
    [("tpch", "or your own as module:Class"), ("collections:Counter", "is not a workload")],
)
def test_what_is_no_workload_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        workload_class(name)
