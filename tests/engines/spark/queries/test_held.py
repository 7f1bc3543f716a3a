"""With which watermark and which limits a held run is let go on, without Spark."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.core.clock import VirtualClock
from slackwater.engines.spark.gates.watermark import MarkedInput, WatermarkRaise
from slackwater.engines.spark.queries.held import GoneOn, Held, TooEarly
from slackwater.ipc.messages import Grant

WINDOW_END_MS = 60_000


class View:
    """An execution whose last batch came to 50 s."""

    def __init__(self) -> None:
        self.watermark_ms = 50_000
        self.marks_ms = {"a": 50_000}

    def raise_watermark(self, to_ms: int) -> None:
        self.watermark_ms = to_ms


class Limits:
    """The read limits of sources that are not ours."""

    def __init__(self, are_lifted: bool = True) -> None:
        self.are_lifted = are_lifted
        self.rows: int | None = None

    def are(self, rows: int | None) -> bool:
        return rows == self.rows

    def set_rows(self, rows: int | None) -> None:
        self.rows = rows


def held(newest_us: Callable[[], int | None], occupied: bool = True, lifted: bool = True) -> Held:
    """A run that has just come, whose gate holds it for 10 s."""
    gate: Any = SimpleNamespace(occupied=occupied)
    limits: Any = Limits(lifted)
    frontier: Any = SimpleNamespace(newest_us=newest_us)
    view: Any = View()
    raises = WatermarkRaise([MarkedInput("a", 0, frontier)])
    return Held(gate, view, limits, 10.0, bound_s=10.0, raises=raises)


def needed() -> Grant:
    return Grant("q", 1, watermark_ms=WINDOW_END_MS)


def test_a_batch_that_would_come_too_early_waits_on() -> None:
    with pytest.raises(TooEarly):
        held(lambda: 59_000_000).raise_watermark(needed(), VirtualClock())
    run = held(lambda: 61_000_000)
    run.raise_watermark(needed(), VirtualClock())
    assert run.view.watermark_ms == 61_000


def test_where_nobody_knows_what_has_arrived_the_batch_goes_and_sees() -> None:
    run = held(lambda: None)
    run.raise_watermark(needed(), VirtualClock())
    assert run.view.watermark_ms == 50_000


def test_the_time_that_asking_takes_counts() -> None:
    """Its gate may have opened by itself meanwhile: no watermark moves under a batch."""
    clock = VirtualClock()

    def slow() -> int:
        clock.advance_to(clock.now() + 9.0)
        return 61_000_000

    run = held(slow)
    run.arrived_s = clock.monotonic()
    with pytest.raises(GoneOn):
        run.raise_watermark(needed(), clock)
    assert run.view.watermark_ms == 50_000


@pytest.mark.parametrize(("lifted", "reached_ms"), [(True, 61_000), (False, 50_000)])
def test_a_batch_that_may_leave_rows_behind_raises_no_watermark(
    lifted: bool, reached_ms: int
) -> None:
    run = held(lambda: 61_000_000, lifted=lifted)
    run.raise_watermark(Grant("q", 1), VirtualClock())
    assert run.view.watermark_ms == reached_ms


@pytest.mark.parametrize(
    ("occupied", "waited_s", "rows"), [(True, 1.0, 5), (False, 1.0, None), (True, 9.0, None)]
)
def test_limits_are_set_only_while_it_waits(
    occupied: bool, waited_s: float, rows: int | None
) -> None:
    run = held(lambda: None, occupied)
    run.limit_rows(5, VirtualClock(waited_s))
    assert run.limits.rows == rows
