"""Delay distributions: their moments, their caps, their spellings."""

import numpy as np
import pytest

from slackwater.core.errors import UsageError
from slackwater.traffic import parse_delays
from slackwater.traffic.delays import TAIL, VALID_FORMS, GammaDelays

SPECS = VALID_FORMS.split(", ")


@pytest.mark.parametrize("spec", SPECS)
def test_draws_have_the_stated_mean_and_cap(spec: str):
    delays = parse_delays(spec)
    drawn = delays.draw_us(np.random.default_rng(3), 200_000)
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    assert drawn.max() <= delays.max_us
    assert drawn.mean() / 1e6 == pytest.approx(delays.mean_s, rel=0.01)


def test_zipf_has_the_stated_shares():
    drawn = parse_delays("zipf:0.99:300ms").draw_us(np.random.default_rng(5), 400_000)
    assert drawn.min() == 1000
    assert drawn.max() == 300_000
    assert np.all(drawn % 1000 == 0)
    support = np.arange(1, 301.0) ** -0.99
    share = np.bincount(drawn // 1000, minlength=301)[1:] / len(drawn)
    assert share[:20] == pytest.approx(support[:20] / support.sum(), rel=0.05)


def test_uniform_may_start_above_zero():
    drawn = parse_delays("uniform:100ms:300ms").draw_us(np.random.default_rng(5), 10_000)
    assert drawn.min() >= 100_000


@pytest.mark.parametrize("shape", [1, 2, 60])
def test_gamma_cap_is_beyond_the_tail(shape: int):
    """For a whole shape the tail is a Poisson sum."""
    cap = GammaDelays(shape, 1.0).max_s
    terms = np.cumprod([1.0, *(cap / k for k in range(1, shape))])
    tail = float(np.exp(-cap) * terms.sum())
    assert TAIL / 100 < tail <= TAIL


@pytest.mark.parametrize(
    "spec",
    [
        "", "constant", "constant:", "constant:-5ms", "normal:3ms", "uniform:300ms:0",
        "uniform:1:2:3", "zipf:x:3ms", "zipf:0.99:0ms", "exponential:0ms",
        "gamma:0:4ms", "gamma:60", "gamma:nan:4ms",
    ],
)  # fmt: skip
def test_bad_spec_is_one_line_that_lists_the_forms(spec: str):
    with pytest.raises(UsageError) as error:
        parse_delays(spec)
    assert VALID_FORMS in str(error.value)
    assert "\n" not in str(error.value)
