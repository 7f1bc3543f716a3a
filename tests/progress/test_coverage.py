"""How often sweeps lie inside the predicted intervals, on simulated streams."""

from collections.abc import Iterator
from functools import cache
from math import sqrt

import numpy as np
import pytest

from slackwater import progress
from slackwater.progress import SweepEstimator
from slackwater.progress.calibrated import Calibrated
from slackwater_bench.klink.estimators import Epoch, simulate

UNIFORM, ZIPF = "uniform:0:300ms", "zipf:0.99:300ms"
WANTED = 0.95
EPOCHS = 2000
ERROR = 3 * sqrt(WANTED * (1 - WANTED) / EPOCHS)  # three binomial deviations


@cache
def epochs(*delays: str) -> tuple[Epoch, ...]:
    """The stream changes from each setting to the next."""
    parts = enumerate(delays, start=11)
    return tuple(
        epoch for seed, one in parts for epoch in simulate(one, 1000, EPOCHS // len(delays), seed)
    )


def judged(
    estimator: SweepEstimator, stream: tuple[Epoch, ...], sees_sweeps: bool = True
) -> Iterator[tuple[bool, float]]:
    for epoch in stream:
        delay = estimator.estimate()
        if delay is not None:
            low, high = delay.interval(WANTED)
            yield low <= epoch.sweep_delay_s <= high, high - low
        for batch in epoch.batches:
            estimator.observe(batch)
        estimator.close_epoch(epoch.sweep_delay_s if sees_sweeps else None)


def hits(name: str, *delays: str, sees_sweeps: bool = True) -> list[bool]:
    estimator = progress.load(name, confidence=WANTED)
    return [hit for hit, _ in judged(estimator, epochs(*delays), sees_sweeps)]


def within_error(found: list[bool]) -> bool:
    return abs(np.mean(found) - WANTED) <= 3 * sqrt(WANTED * (1 - WANTED) / len(found))


SETTINGS = [(UNIFORM,), (ZIPF,), (UNIFORM, ZIPF), (ZIPF, UNIFORM)]


@pytest.mark.parametrize("delays", SETTINGS, ids=" then ".join)
def test_calibrated_is_right_as_often_as_it_says(delays: tuple[str, ...]) -> None:
    found = hits("calibrated", *delays)
    assert within_error(found)
    assert within_error(found[-EPOCHS // 4 :])


@pytest.mark.parametrize("delays", SETTINGS, ids=" then ".join)
def test_also_from_frontier_lags_alone(delays: tuple[str, ...]) -> None:
    coverage = np.mean(hits("calibrated", *delays, sees_sweeps=False))
    # Nothing steers by sweeps here, and batches see the stream between the ends of windows.
    assert WANTED - ERROR <= coverage <= WANTED + 2 * ERROR


def test_lags_alone_when_windows_end_in_step_with_the_events() -> None:
    # With this seed each window ends 4 µs before an event. One sweep in six comes after the
    # shortest delay there is, 1 ms, which is less than nearly every lag.
    stream = tuple(simulate(ZIPF, 1000, EPOCHS, seed=108))
    assert np.mean([epoch.sweep_delay_s < 0.00101 for epoch in stream]) > 0.1
    found = [hit for hit, _ in judged(Calibrated(confidence=WANTED), stream, sees_sweeps=False)]
    assert WANTED - ERROR <= np.mean(found) <= WANTED + 2 * ERROR


@pytest.mark.parametrize("delays", [(UNIFORM, ZIPF), (ZIPF, UNIFORM)], ids=" then ".join)
def test_a_change_is_noticed_within_a_few_epochs(delays: tuple[str, ...]) -> None:
    estimator = Calibrated(confidence=WANTED)
    found = list(judged(estimator, epochs(*delays)))
    half = len(found) // 2
    steady = np.mean([width for _, width in judged(Calibrated(), epochs(delays[1]))])
    assert np.mean([hit for hit, _ in found[half + 12 : half + 112]]) >= 0.88
    # The old values are gone as well: the intervals are those of the new delays.
    assert np.mean([width for _, width in found[half + 30 : half + 230]]) < 1.35 * steady


def test_a_steady_stream_is_not_forgotten() -> None:
    estimator = Calibrated()
    list(judged(estimator, epochs(UNIFORM)))
    assert len(estimator._sample) == estimator.history


@pytest.mark.parametrize("delays", SETTINGS, ids=" then ".join)
def test_the_published_interval_holds_almost_no_sweep(delays: tuple[str, ...]) -> None:
    # It is that of the mean delay of an event; sweeps come with the first event past the base.
    assert np.mean(hits("paper", *delays)) < 0.05


@pytest.mark.parametrize(
    ("delays", "lowest", "highest"),
    [
        ((UNIFORM,), 0.93, 0.98),  # steady delays: its errors tell their own spread
        ((ZIPF,), 0.93, 0.98),
        ((ZIPF, UNIFORM), 0.80, 0.91),  # longer delays: the old spread is forgotten slowly
        ((UNIFORM, ZIPF), 0.98, 1.0),  # shorter delays: far too wide for as long
    ],
    ids=str,
)
def test_linear_regression_is_off_for_long_after_a_change(
    delays: tuple[str, ...], lowest: float, highest: float
) -> None:
    second_half = hits("linear", *delays)[-EPOCHS // 2 :]
    assert lowest <= np.mean(second_half) <= highest
