"""What the parts of a query tell each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater import progress
from slackwater.core import Deadlines, InputStream, QueryMetrics, Window
from slackwater.core.model import Outlook, Sweep
from slackwater.progress.epochs import QueryEpochs
from slackwater.progress.forwarding import SweepsSeen, deadlines_upstream, outlook

WINDOW = Window("tumbling", 3.0, 3.0)


def test_what_a_part_tells_includes_what_it_was_told() -> None:
    middle = QueryMetrics(batch_fixed_s=0.2, batch_per_row_s=1e-5, beyond=Outlook(0.5, 2e-5))
    found = outlook(middle)
    assert (found.fixed_s, found.per_row_s) == (pytest.approx(0.7), pytest.approx(3e-5))


@given(own_s=st.floats(0, 5), theirs_s=st.floats(0, 5), phase_s=st.floats(0, 3))
def test_the_part_before_sweeps_when_the_part_behind_can(
    own_s: float, theirs_s: float, phase_s: float
) -> None:
    window = Window("tumbling", 3.0, 3.0, phase_s)
    own = Deadlines(inputs=(InputStream("feed", "at", own_s),))
    found = deadlines_upstream(own, theirs_s, [window])
    # The first event that completes a window there is the first that completes it here.
    end_s = window.next_end(100.0)
    needed_s = end_s + theirs_s
    assert found.windows[0].next_end(needed_s - own_s - 1e-6) + own_s == pytest.approx(needed_s)


def test_a_part_with_windows_of_its_own_keeps_them_and_one_without_a_watermark_has_none() -> None:
    own = Deadlines((WINDOW,), (InputStream("feed", "at", 0.5),))
    assert deadlines_upstream(own, 2.0, [Window("tumbling", 9.0, 9.0)]) is own
    blind = Deadlines(inputs=(InputStream("feed"),))
    assert deadlines_upstream(blind, 2.0, [WINDOW]) is blind


def test_each_window_is_seen_to_be_swept_once() -> None:
    seen = SweepsSeen()
    found = seen.take([(1.0, 1.1), (3.4, 3.5), (3.6, 3.9)], [WINDOW], 0.5)
    found += seen.take([(3.7, 4.0), (6.5, 6.8), (13.0, 14.0)], [WINDOW], 0.5)
    assert found == [Sweep(3.0, 3.9), Sweep(6.0, 6.8), Sweep(12.0, 14.0)]


def told(number: int, looked_s: float, swept_s: float | None) -> QueryMetrics:
    """Of a query that looks for its window's rows late; they had come at ``swept_s``."""
    end_s = 3.0 * number
    return QueryMetrics(
        batches=number,
        rows=1000 * number,
        batch_start_s=end_s + looked_s,
        watermark_s=end_s - 3.0,
        next_watermark_s=end_s + 0.01,
        sweep=None if swept_s is None else Sweep(end_s, end_s + swept_s),
    )


def test_rows_that_come_in_bursts_are_not_expected_as_late_as_they_were_looked_for() -> None:
    deadlines = Deadlines((WINDOW,), (InputStream("log", "at", 0.0),), "update")
    alone, informed = (
        QueryEpochs(deadlines, lambda: progress.load("calibrated")) for _ in range(2)
    )
    for number in range(1, 40):
        alone.update(told(number, looked_s=1.5, swept_s=None))
        informed.update(told(number, looked_s=1.5, swept_s=0.4))
    assert alone.arrival is not None
    assert informed.arrival is not None
    assert alone.arrival.mean_s > 1.4
    assert informed.arrival.mean_s == pytest.approx(0.4, abs=0.05)
