"""What every sampler must keep."""

from collections.abc import Callable

import msgspec
import numpy as np

from slackwater import sampling
from slackwater.core import UsageError
from slackwater.sampling import Grid, Monitor, Plan, Promise
from slackwater.sampling.delays import LEVELS

GRID = Grid(3_000_000, 3_000_000)  # windows of 3 s, in microseconds


def check_sampler(name: str) -> None:
    """Check all that every sampler must keep; ``name`` may be ``module:Class``."""
    for check in SAMPLER_CHECKS:
        check(name)


def monitor_of(scale_s: float, room: float, cycles: int) -> Monitor:
    """Return what a sampler knows after some windows of exponential delays.

    Parameters
    ----------
    scale_s
        The mean delay.
    room
        How far the promised error is from what all rows give; less of it takes more rows.
    """
    found = Monitor()
    for _ in range(cycles):
        found.delays.add(-scale_s * np.log1p(-np.array(LEVELS)), rows=3000.0)
        found.close_window(room, rows=3000.0)
    return found


def makes_plans_that_can_be_followed(name: str) -> None:
    """Plan rates above 0 and up to 1, and a wait up to ``max_wait_s``."""
    for scale_s, room, cycles in ((0.001, 1e-7, 0), (0.24, 1.0, 5), (20.0, 500.0, 30)):
        for grid in (GRID, Grid(2_000_000, 1_000_000), Grid(5_000_000, 3_000_000, 7)):
            check_plan(name, monitor_of(scale_s, room, cycles), grid)


def check_plan(name: str, monitor: Monitor, grid: Grid) -> None:
    """Check that one plan can be followed and survives its way through a file."""
    sampler = sampling.load(name)
    plan = sampler.plan(monitor, Promise(), grid)
    cell = plan.cell
    assert 0 <= cell.wait_us <= sampler.max_wait_s * 1e6, f"cannot wait {cell.wait_us} µs"
    assert cell.rates, "no rates"
    assert all(0 < rate <= 1 for rate in cell.rates), f"no rates: {cell.rates}"
    assert all(0 < share <= 1 for share in cell.shares), f"no shares: {cell.shares}"
    assert len(cell.doubts) >= len(cell.shares), "what is corrected for is not certain"
    text = msgspec.json.encode(plan, enc_hook=lambda number: number.item())
    assert msgspec.json.decode(text, type=Plan) == plan, "JSON loses a part of the plan"


def begins_exactly(name: str) -> None:
    """Keep all rows and wait for ``first_wait_s`` while nothing is known."""
    cell = sampling.load(name, first_wait_s=1.5).plan(Monitor(), Promise(), GRID).cell
    assert cell.rates == (1.0,), f"the first windows are sampled: {cell.rates}"
    assert cell.wait_us == 1_500_000, f"the first wait is {cell.wait_us} µs instead of first_wait_s"


def keeps_more_for_a_smaller_error(name: str) -> None:
    """Keep no fewer rows and wait no less when less room is left for an error."""
    sampler = sampling.load(name)
    loose, strict = (
        sampler.plan(monitor_of(0.24, room, 5), Promise(), GRID).cell for room in (2.0, 0.05)
    )
    assert min(strict.rates) >= min(loose.rates), "fewer rows for a smaller error"
    assert strict.wait_us >= loose.wait_us, "a shorter wait for a smaller error"


def refuses_a_wait_that_cannot_be(name: str) -> None:
    """Raise a ``UsageError`` for a negative ``first_wait_s``."""
    refused = ""
    try:
        sampling.load(name, first_wait_s=-1)
    except UsageError as error:
        refused = str(error)
    assert "first_wait_s" in refused, f"first_wait_s = -1: {refused or 'not refused'}"


SAMPLER_CHECKS: tuple[Callable[[str], None], ...] = (
    makes_plans_that_can_be_followed,
    begins_exactly,
    keeps_more_for_a_smaller_error,
    refuses_a_wait_that_cannot_be,
)
