"""The benchmark of estimators: the simulated epochs and the shape of the result."""

import json
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from slackwater import progress
from slackwater.core.errors import UsageError
from slackwater_bench.klink.estimators import BATCHES, measure, simulate, table

UNIFORM, ZIPF = "uniform:0:300ms", "zipf:0.99:300ms"


def test_first_arrivals_come_long_before_the_mean_delay() -> None:
    epochs = list(simulate(UNIFORM, 1000, 600, seed=4))
    sweeps = [epoch.sweep_delay_s for epoch in epochs]
    # P(w - base > x) = exp(-x² · rate / 2 · 1/300 ms): a Rayleigh distribution.
    assert np.mean(sweeps) == pytest.approx(np.sqrt(0.3 / 1000 * np.pi / 2), rel=0.06)
    batches = [batch for epoch in epochs for batch in epoch.batches]
    count = sum(batch.count for batch in batches)
    assert sum(batch.total_s for batch in batches) / count == pytest.approx(0.15, rel=0.01)
    assert sum(batch.squares_s2 for batch in batches) / count == pytest.approx(0.03, rel=0.01)


@pytest.mark.parametrize("delays", [UNIFORM, ZIPF, "exponential:240ms"])
def test_frontier_lags_are_distributed_as_sweep_delays(delays: str) -> None:
    epochs = list(simulate(delays, 1000, 1000, seed=5))
    lags = [batch.frontier_lag_s for epoch in epochs for batch in epoch.batches]
    sweeps = [epoch.sweep_delay_s for epoch in epochs]
    levels = (0.1, 0.5, 0.9)
    # Windows end at one place between two events, batches at any.
    assert np.quantile(lags, levels) == pytest.approx(
        np.quantile(sweeps, levels), rel=0.1, abs=1e-3
    )


def test_the_stream_is_the_same_in_pieces_and_for_the_same_seed() -> None:
    long, short = list(simulate(ZIPF, 200, 150, 3)), list(simulate(ZIPF, 200, 100, 3))
    assert long[:100] == short
    assert long != list(simulate(ZIPF, 200, 150, 4))
    assert {len(epoch.batches) for epoch in long} == {BATCHES}


def test_a_slow_stream_still_has_epochs() -> None:
    epochs = list(simulate(UNIFORM, 0.5, 50, seed=1))
    assert all(0 <= epoch.sweep_delay_s <= 2.3 for epoch in epochs)


def test_the_result_has_a_row_for_everything() -> None:
    steps: list[str] = []
    result = measure(120, 500, [UNIFORM, ZIPF], [0.9, 0.95], seed=2, on_step=steps.append)
    assert steps == [UNIFORM, ZIPF, f"{UNIFORM}, then {ZIPF}", f"{ZIPF}, then {UNIFORM}"]
    assert json.loads(json.dumps(result)) == result
    assert len(result["rows"]) == len(steps) * 2 * len(progress.names())
    for row in result["rows"]:
        assert 0 <= row["coverage_low"] <= row["coverage"] <= row["coverage_high"] <= 1
        assert row["width_s"] > 0
        assert 110 <= row["epochs"] < 120  # the first cannot be predicted
    assert result == measure(120, 500, [UNIFORM, ZIPF], [0.9, 0.95], seed=2)


def test_one_setting_cannot_change() -> None:
    result = measure(20, 500, [UNIFORM], [0.95], seed=2)
    assert {row["delays"] for row in result["rows"]} == {UNIFORM}
    written = StringIO()
    Console(width=160, file=written).print(table(result))
    assert all(name in written.getvalue() for name in progress.names())


@pytest.mark.parametrize(("epochs", "rate"), [(3, 500), (20, 0)])
def test_too_little_is_one_clear_line(epochs: int, rate: float) -> None:
    with pytest.raises(UsageError, match=r"at least 20 epochs|above zero"):
        measure(epochs, rate, [UNIFORM], [0.95], seed=2)


def test_unknown_delays_are_one_clear_line() -> None:
    with pytest.raises(UsageError, match="names no network delays"):
        measure(20, 500, ["normal:3"], [0.95], seed=2)
