"""A trial's settings and queries, without Spark."""

import json
from dataclasses import asdict, replace

import pytest

from slackwater.core import UsageError
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.workloads.catalog import WORKLOADS


@pytest.mark.parametrize(
    ("workload", "windows"),
    [("ysb", (3.0, 3.0)), ("linear-road", (5.0, 3.0)), ("nyc-taxi", (2.0, 1.0))],
)
def test_windows_are_the_workload_s_own_unless_given(
    workload: str, windows: tuple[float, float]
) -> None:
    trial = PolicyTrial("fcfs", workload=workload)
    assert (trial.window_s, trial.slide_s) == windows
    wide = PolicyTrial("fcfs", workload=workload, window_s=8.0, slide_s=4.0)
    assert (wide.window_s, wide.slide_s) == (8.0, 4.0)


def test_windows_that_cannot_be_and_unknown_workloads_are_refused() -> None:
    with pytest.raises(UsageError, match="slide"):
        PolicyTrial("fcfs", window_s=2.0, slide_s=3.0)
    with pytest.raises(UsageError, match="known: ysb, linear-road, nyc-taxi"):
        PolicyTrial("fcfs", workload="tpch")


def test_a_trial_survives_its_journey_as_json() -> None:
    trial = PolicyTrial("klink", trigger_s=1.5, fair=True, parameters={"confidence": 0.9})
    assert PolicyTrial(**json.loads(json.dumps(asdict(trial)))) == trial


@pytest.mark.parametrize("workload", WORKLOADS)
def test_queries_differ_in_traffic_and_phase_and_follow_from_the_seed(workload: str) -> None:
    trial = PolicyTrial("fcfs", workload=workload, queries=4, rate="50")
    found = trial.workloads(1000.0)
    assert list(found) == ["q000", "q001", "q002", "q003"]
    assert len({query.traffic.seed for query in found.values()}) == 4
    ends = [query.window_ends(1_000_000_000, 1_010_000_000) for query in found.values()]
    assert len({tuple(some) for some in ends}) == 4
    assert found == trial.workloads(1000.0)
    assert found != replace(trial, seed=2).workloads(1000.0)


def test_aligned_windows_end_together() -> None:
    found = PolicyTrial("fcfs", queries=3, aligned=True).workloads(0.0).values()
    assert {tuple(query.window_ends(0, 9_000_000)) for query in found} == {
        (3_000_000, 6_000_000, 9_000_000)
    }


def test_windows_begin_at_whole_milliseconds_as_the_times_of_kafka_are() -> None:
    found = PolicyTrial("fcfs", queries=20).workloads(0.0).values()
    assert not [query.windows.phase_us for query in found if query.windows.phase_us % 1000]


def test_options_of_one_workload_do_not_trouble_another() -> None:
    (ysb,) = PolicyTrial("fcfs", queries=1, campaigns=7).workloads(0.0).values()
    assert ysb.campaigns == 7  # type: ignore[attr-defined]
    assert PolicyTrial("fcfs", workload="nyc-taxi", queries=1, campaigns=7).workloads(0.0)
