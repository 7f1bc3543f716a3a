"""What every sampler must keep, whatever it is told."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater import sampling, testing
from slackwater.sampling import Grid, Plan, Promise
from slackwater.testing import samplers as checks
from slackwater.testing.samplers import monitor_of as monitor

GRIDS = [checks.GRID, Grid(2_000_000, 1_000_000), Grid(5_000_000, 3_000_000, 7)]


@pytest.mark.parametrize("name", sampling.names())
class TestEverySampler:
    @pytest.mark.parametrize("check", testing.SAMPLER_CHECKS, ids=lambda check: check.__name__)
    def test_the_contract(self, name: str, check: Callable[[str], None]) -> None:
        check(name)

    @given(
        scale_s=st.floats(0.001, 20.0),
        room=st.floats(1e-7, 500.0),
        cycles=st.integers(0, 30),
        grid=st.sampled_from(GRIDS),
    )
    def test_plans_can_be_followed(
        self, name: str, scale_s: float, room: float, cycles: int, grid: Grid
    ) -> None:
        checks.check_plan(name, monitor(scale_s, room, cycles), grid)


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
