"""The workload that fills memory gives exact results all the same."""

from slackwater.traffic import Traffic
from slackwater_bench.workloads.catch_up import CatchUp


def test_the_truth_counts_every_event_once() -> None:
    catch_up = CatchUp(traffic=Traffic(start_s=0, stop_s=30, rate="50"), phase_s=0.4)
    truth = catch_up.truth(0, 40_000_000)
    assert sum(number for rows in truth.values() for (number,) in rows) == 1500
