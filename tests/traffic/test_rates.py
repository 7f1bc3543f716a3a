"""Rates: the count is the integral of the rate, and the inverse undoes the count."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.core.errors import UsageError
from slackwater.traffic import Rate, parse_rate


@st.composite
def rates(draw: st.DrawFn) -> Rate:
    lengths = draw(st.lists(st.floats(0.1, 5), min_size=1, max_size=5))
    per_second = draw(
        st.lists(
            st.just(0.0) | st.floats(1, 5000), min_size=len(lengths), max_size=len(lengths)
        ).filter(any)
    )
    starts = np.cumsum([0.0, *lengths])
    period = draw(st.sampled_from([None, float(starts[-1])]))
    return Rate(tuple(starts[:-1].tolist()), tuple(per_second), period)


@given(rates())
@settings(max_examples=50, deadline=None)
def test_count_is_the_integral_of_the_rate(rate: Rate):
    times = np.linspace(0, 20, 40_001)
    steps = np.concatenate([[0.0], np.cumsum(rate.at(times[:-1]) * np.diff(times))])
    jump = max(rate.per_second) * (times[1] - times[0])
    crossings = 20 / (rate.period_s or 20) * len(rate.starts_s) + len(rate.starts_s)
    assert np.all(np.abs(rate.count(times) - steps) <= jump * crossings + 1e-6)


@given(rates(), st.lists(st.integers(0, 20_000), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_inverse_undoes_the_count(rate: Rate, numbers: list[int]):
    times = rate.inverse(numbers)
    reached = np.isfinite(times)
    assert rate.count(times[reached]) == pytest.approx(np.asarray(numbers)[reached], abs=1e-6)


@given(rates())
@settings(max_examples=50, deadline=None)
def test_events_come_in_order(rate: Rate):
    times = rate.inverse(np.arange(2000))
    assert np.all(np.diff(times[np.isfinite(times)]) >= 0)


@given(rates())
def test_text_is_read_back(rate: Rate):
    assert parse_rate(rate.text()) == rate


def test_events_wait_for_the_end_of_a_pause():
    rate = parse_rate("steps:0=0,10=100")
    assert rate.inverse([0, 100]).tolist() == [10.0, 11.0]
    assert rate.count([-1.0, 5.0, 10.5]).tolist() == [0.0, 0.0, 50.0]


def test_a_rate_that_ends_never_reaches_later_events():
    assert parse_rate("steps:0=100,1=0").inverse([99, 100]).tolist() == [0.99, np.inf]


def test_bursts_come_at_the_end_of_every_period():
    rate = parse_rate("burst:1000:5000:every=10:for=2")
    assert rate.at([0, 7.9, 8, 9.9, 10, 18]).tolist() == [1000, 1000, 5000, 5000, 1000, 5000]
    assert rate.count([10, 20]).tolist() == [18_000, 36_000]


def test_trace_file(tmp_path: Path):
    trace = tmp_path / "trace.csv"
    trace.write_text("seconds,rate\n0,100\n2,300\n")
    assert parse_rate(f"trace:{trace}") == Rate((0.0, 2.0), (100.0, 300.0))


@pytest.mark.parametrize("content", ["", "seconds,rate\n", "0,100\n1,x\n", "1,100\n", "0\n"])
def test_bad_trace_file_is_named(tmp_path: Path, content: str):
    trace = tmp_path / "trace.csv"
    trace.write_text(content)
    with pytest.raises(UsageError):
        parse_rate(f"trace:{trace}")


@pytest.mark.parametrize(
    "text", ["", "fast", "-5", "0", "nan", "steps:", "steps:1=5", "steps:0=5,0=6", "burst:1:2",
             "burst:1:2:every=10:for=11", "burst:1:2:for=1:every=10", "trace:/nowhere.csv"],
)  # fmt: skip
def test_bad_rates_are_refused_in_one_line(text: str):
    with pytest.raises(UsageError) as error:
        parse_rate(text)
    assert "\n" not in str(error.value)
