"""Timing of the quality controller: there is something to shed, and the figures say of what."""

from slackwater_bench.costs.quality_cycle import measure, table


def test_a_cycle_can_be_timed() -> None:
    result = measure(tasks=53, workers=4, repeats=3)
    assert (result["tasks"], result["workers"]) == (53, 4)
    assert result["queries_shed"] > 0
    assert 0 < result["milliseconds"]["p50"] <= result["milliseconds"]["max"]
    assert table(result).row_count == 1
