"""With which watermark a held run is let go on, without Spark."""

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


def held(newest_us: Callable[[], int | None]) -> Held:
    """A run that has just come, whose gate holds it for 10 s."""
    gate: Any = SimpleNamespace(occupied=True)
    frontier: Any = SimpleNamespace(newest_us=newest_us)
    view: Any = View()
    return Held(
        gate, view, 10.0, bound_s=10.0, raises=WatermarkRaise([MarkedInput("a", 0, frontier)])
    )


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
