"""What every sampler must keep, whatever it is told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater import sampling
from slackwater.core.errors import UsageError
from slackwater.sampling import Grid, Monitor, Plan, Promise
from slackwater.sampling.delays import LEVELS

GRIDS = [Grid(3_000_000, 3_000_000), Grid(2_000_000, 1_000_000), Grid(5_000_000, 3_000_000, 7)]


def monitor(scale_s: float, room: float, cycles: int) -> Monitor:
    """Of exponential delays, after some windows."""
    found = Monitor()
    for _ in range(cycles):
        found.delays.add(-scale_s * np.log1p(-np.array(LEVELS)), rows=3000.0)
        found.close_window(room, rows=3000.0)
    return found


@pytest.mark.parametrize("name", sampling.names())
class TestEverySampler:
    @given(
        scale_s=st.floats(0.001, 20.0),
        room=st.floats(1e-7, 500.0),
        cycles=st.integers(0, 30),
        grid=st.sampled_from(GRIDS),
    )
    def test_plans_can_be_followed(
        self, name: str, scale_s: float, room: float, cycles: int, grid: Grid
    ) -> None:
        sampler = sampling.load(name)
        plan = sampler.plan(monitor(scale_s, room, cycles), Promise(), grid)
        cell = plan.cell
        assert 0 <= cell.wait_us <= sampler.max_wait_s * 1e6
        assert cell.rates
        assert all(0 < rate <= 1 for rate in cell.rates)
        assert all(0 < share <= 1 for share in cell.shares)
        assert len(cell.doubts) >= len(cell.shares), "what is corrected for is not certain"
        assert Plan.of_json(plan.to_json()) == plan

    def test_begins_exactly_while_nothing_is_known(self, name: str) -> None:
        plan = sampling.load(name, first_wait_s=1.5).plan(Monitor(), Promise(), GRIDS[0])
        assert plan.cell.rates == (1.0,)
        assert plan.cell.wait_us == 1_500_000

    def test_a_smaller_error_never_needs_fewer_rows(self, name: str) -> None:
        sampler = sampling.load(name)
        loose, strict = (
            sampler.plan(monitor(0.24, room, 5), Promise(), GRIDS[0]).cell for room in (2.0, 0.05)
        )
        assert min(strict.rates) >= min(loose.rates)
        assert strict.wait_us >= loose.wait_us

    def test_refuses_a_wait_that_cannot_be(self, name: str) -> None:
        with pytest.raises(UsageError, match="first_wait_s"):
            sampling.load(name, first_wait_s=-1)


def test_aion_waits_only_where_it_must() -> None:
    waits = {
        room: sampling.load("aion").plan(monitor(0.24, room, 5), Promise(), GRIDS[0]).cell.wait_us
        for room in (1.0, 0.005)
    }
    assert waits[1.0] == 0
    assert waits[0.005] > 0


def test_only_aion_corrects_for_late_rows() -> None:
    for name in sampling.names():
        cell = sampling.load(name).plan(monitor(0.24, 1.0, 5), Promise(), GRIDS[0]).cell
        assert bool(cell.shares) == (name == "aion")


def test_a_plan_that_nobody_renews_becomes_exact() -> None:
    plan = sampling.load("aion").plan(monitor(0.24, 1.0, 5), Promise(), GRIDS[0])
    old = Plan(plan.grid, plan.cell, plan.safe_wait_us, until_s=100.0)
    assert old.at(99.0).cell == plan.cell
    assert old.at(100.0).cell.rates == (1.0,)
    assert old.at(100.0).cell.wait_us == plan.safe_wait_us
