"""Approximate queries over many windows of traffic: late rows, sampling and planning together."""

import numpy as np
import pytest

from slackwater.traffic import Traffic
from slackwater_bench.aion.trial import SETTINGS
from tests.sampling.closed_loop import Outcome, run

POOL = np.random.default_rng(5).lognormal(1.0, 0.7, 1 << 16)
HEAVY = np.random.default_rng(6).pareto(1.3, 1 << 16) + 1


def light(number: np.ndarray) -> np.ndarray:
    return POOL[number % len(POOL)]


def keeps_its_promise(outcome: Outcome, aggregate: str) -> None:
    """Among the windows that promise it; and intervals cover as often as they claim."""
    promised = outcome.bounded(aggregate)
    errors = outcome.errors(aggregate)[promised]
    assert promised.mean() > 0.5
    assert (errors <= 0.05).mean() >= 0.95 - 1.7 * np.sqrt(0.95 * 0.05 / len(errors))
    covered = outcome.covered(aggregate)
    assert covered.mean() >= 0.95 - 1.7 * np.sqrt(0.95 * 0.05 / len(covered)) - 0.01


@pytest.mark.parametrize("setting", SETTINGS)
def test_aion_keeps_its_promise_without_waiting(setting: str) -> None:
    delays, gaps = SETTINGS[setting]
    traffic = Traffic(start_s=0, rate="1000", delays=delays, gaps=gaps, seed=3)
    outcome = run(traffic, light, windows=250)
    for aggregate in ("count", "sum", "mean"):
        keeps_its_promise(outcome, aggregate)
    assert np.mean(outcome.waits_s) < 0.01
    assert np.mean(outcome.rates) < 0.6


def test_the_others_wait_longer() -> None:
    traffic = Traffic(start_s=0, rate="1000", delays="exponential:240ms", gaps="gamma:2", seed=3)
    waits = {
        sampler: np.mean(run(traffic, light, sampler=sampler, windows=60).waits_s)
        for sampler in ("aion", "aq-k-slack", "aion-minus", "k-slack")
    }
    assert waits["aion"] < waits["aq-k-slack"] < waits["aion-minus"]
    assert waits["aion-minus"] == pytest.approx(waits["k-slack"], rel=0.05)


def test_small_windows_wait_for_as_many_rows_as_they_need() -> None:
    """Of 20 rows a window; of 3,000 it would wait for none (above)."""
    traffic = Traffic(start_s=0, rate="7", delays="exponential:240ms", gaps="gamma:2", seed=3)
    outcome = run(traffic, light, windows=500, aggregates=("count",))
    assert np.mean(outcome.rates) > 0.99
    keeps_its_promise(outcome, "count")
    assert 0.2 < np.mean(outcome.waits_s) < 2.0


@pytest.mark.parametrize(("rate", "wait_s"), [("1667", 0.4), ("4000", 0.25)])
def test_many_small_groups_promise_and_keep_it(rate: str, wait_s: float) -> None:
    """A hundred groups of 50 and of 120 rows: they wait a little, and hardly any is marked."""
    traffic = Traffic(start_s=0, rate=rate, delays="exponential:240ms", gaps="gamma:2", seed=3)
    outcome = run(
        traffic, lambda number: np.ones(len(number)), windows=60, aggregates=("count",), groups=100
    )
    keeps_its_promise(outcome, "count")
    assert outcome.bounded("count").mean() > 0.97
    assert np.mean(outcome.waits_s) < wait_s
    bias = np.concatenate([e.value for e in outcome.estimates["count"]]).sum()
    assert bias == pytest.approx(np.concatenate(outcome.truths["count"]).sum(), rel=0.005)


def test_too_little_known_is_not_promised() -> None:
    """With six rows a window, delays are learnt too slowly to be sure of each row."""
    traffic = Traffic(start_s=0, rate="2", delays="exponential:240ms", gaps="gamma:2", seed=3)
    outcome = run(traffic, light, windows=500, aggregates=("count",))
    promised = outcome.bounded("count")
    assert (outcome.errors("count")[promised] <= 0.05).mean() >= 0.95
    assert promised.mean() < 0.6


@pytest.mark.parametrize("rate", ["steps:0=500,600=2000", "burst:500:1500:every=7:for=2"])
def test_a_changing_rate_breaks_no_promise(rate: str) -> None:
    traffic = Traffic(start_s=0, rate=rate, delays="exponential:240ms", gaps="gamma:2", seed=3)
    outcome = run(traffic, light, windows=400)
    for aggregate in ("count", "sum", "mean"):
        wrong, bounded = outcome.errors(aggregate) > 0.05, outcome.bounded(aggregate)
        assert wrong[bounded].mean() <= 0.05


def test_heavy_tails_break_no_promise_silently() -> None:
    traffic = Traffic(start_s=0, rate="1000", delays="exponential:240ms", gaps="gamma:2", seed=3)
    outcome = run(
        traffic, lambda number: HEAVY[number % len(HEAVY)], windows=300, aggregates=("sum", "mean")
    )
    for aggregate in ("sum", "mean"):
        wrong, bounded = outcome.errors(aggregate) > 0.05, outcome.bounded(aggregate)
        assert wrong[bounded].mean() <= 0.05


@pytest.mark.parametrize(
    "delays",
    ["exponential:240ms|600s|exponential:900ms", "exponential:900ms|600s|uniform:0:300ms"],
)
def test_changing_delays_break_no_promise_silently(delays: str) -> None:
    traffic = Traffic(start_s=0, rate="1000", delays=delays, gaps="gamma:2", seed=3)
    outcome = run(traffic, light, windows=380)
    for aggregate in ("count", "sum", "mean"):
        wrong, bounded = outcome.errors(aggregate) > 0.05, outcome.bounded(aggregate)
        assert wrong[bounded].mean() <= 0.05
        assert bounded.mean() > 0.8
    around = slice(180, 200)  # the change is in window 200 less those of the warm-up
    silently = wrong & outcome.bounded("mean")
    assert silently[around].sum() <= 2
