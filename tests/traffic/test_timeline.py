"""The timeline against slow, obvious versions of itself."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.traffic import Arrivals, Timeline, Traffic

START_S = 1_700_000_000
START_US = START_S * 1_000_000

RATES = [
    "7",
    "300",
    "2500.5",
    "steps:0=0,1=400,2.5=0,4=900",
    "burst:20:1500:every=2:for=0.5",
    "burst:0:800:every=1:for=0.25",
    "steps:0=300,3=0",
]
DELAYS = [
    "constant:0ms",
    "constant:150ms",
    "uniform:0:300ms",
    "zipf:0.99:300ms",
    "exponential:40ms",
]


@st.composite
def traffics(draw: st.DrawFn) -> Traffic:
    return Traffic(
        start_s=START_S,
        stop_s=draw(st.none() | st.floats(0, 5).map(lambda s: START_S + s)),
        rate=draw(st.sampled_from(RATES)),
        delays=draw(st.sampled_from(DELAYS)),
        partitions=draw(st.integers(1, 4)),
        seed=draw(st.integers(0, 2**40)),
    )


TIMES = st.integers(-500_000, 6_000_000).map(lambda t: START_US + t)


def rows(arrivals: Arrivals) -> list[tuple[int, int, int, int]]:
    columns = (arrivals.partition, arrivals.index, arrivals.event_us, arrivals.arrival_us)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(traffics(), TIMES)
@settings(max_examples=60, deadline=None)
def test_the_frontier_is_the_newest_event_that_has_arrived(traffic: Traffic, until_us: int):
    seen = traffic.timeline().arrived(START_US - 1, until_us).event_us
    assert traffic.timeline().frontier_us(until_us) == (int(seen.max()) if len(seen) else None)


@pytest.mark.parametrize("traffic", [{"stop_s": START_S + 60.0}, {"rate": "steps:0=1000,60=0"}])
def test_silence_costs_the_frontier_nothing(
    traffic: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    looked: list[int] = []
    times = Timeline._times

    def counting(self: Timeline, partition: int, low: int, high: int) -> Any:
        if self is timeline:  # a thread that an earlier test left may read another
            looked.append(high - low)
        return times(self, partition, low, high)

    timeline = Traffic(**{"start_s": START_S, "rate": "1000", "seed": 1} | traffic).timeline()
    monkeypatch.setattr(Timeline, "_times", counting)
    found = []
    for silent_s in (1, 20):
        looked.clear()
        found.append((timeline.frontier_us(START_US + (60 + silent_s) * 10**6), sum(looked)))
    assert found[0] == found[1]
    assert found[0][1] < 10_000


@given(traffics(), st.lists(TIMES, min_size=2, max_size=6).map(sorted))
@settings(max_examples=60, deadline=None)
def test_any_split_reads_the_same_rows_in_the_same_order(traffic: Traffic, times: list[int]):
    whole = rows(traffic.timeline().arrived(times[0], times[-1]))
    pieces = [rows(traffic.timeline().arrived(a, b)) for a, b in pairwise(times)]
    assert [row for piece in pieces for row in piece] == whole
    assert len(set(whole)) == len(whole)


@given(traffics(), TIMES, TIMES)
@settings(max_examples=60, deadline=None)
def test_counts_agree_with_rows(traffic: Traffic, a: int, b: int):
    timeline = traffic.timeline()
    low, high = sorted((a, b))
    read = timeline.arrived(low, high)
    assert timeline.count(high) - timeline.count(low) == len(read)
    for partition in range(traffic.partitions):
        alone = timeline.arrived(low, high, partition)
        assert rows(alone) == [row for row in rows(read) if row[0] == partition]
        grown = timeline.count(high, partition) - timeline.count(low, partition)
        assert grown == len(alone)


@given(traffics(), TIMES)
@settings(max_examples=40, deadline=None)
def test_nothing_is_lost(traffic: Traffic, until_us: int):
    """Every event that happened arrives within the largest delay, and arrives once."""
    timeline = traffic.timeline()
    happened = timeline.happened(until_us)
    read = timeline.arrived(START_US - 1, until_us + timeline.delays.max_us)
    numbers = np.sort(read.index * traffic.partitions + read.partition)
    assert numbers[:happened].tolist() == list(range(happened))
    assert np.all(read.arrival_us >= read.event_us)
    assert np.all(read.arrival_us <= read.event_us + timeline.delays.max_us)


@given(traffics(), TIMES)
@settings(max_examples=60, deadline=None)
def test_happened_counts_event_times(traffic: Traffic, until_us: int):
    timeline = traffic.timeline()
    times = timeline.event_us(np.arange(20_000))
    if traffic.stop_s is not None:
        times = times[times < round(traffic.stop_s * 1e6)]
    assert timeline.happened(until_us) == int(np.count_nonzero(times <= until_us))


def slow_cut(timeline: Timeline, after_us: int, until_us: int, limit: int) -> int:
    arrivals = timeline.arrived(after_us, until_us).arrival_us.tolist()
    if len(arrivals) <= limit:
        return until_us
    first_out = arrivals[limit]
    return first_out - 1 if first_out > arrivals[0] else first_out


@given(traffics(), TIMES, TIMES, st.integers(1, 3000))
@settings(max_examples=100, deadline=None)
def test_cut_is_the_largest_time_within_the_limit(traffic: Traffic, a: int, b: int, limit: int):
    timeline = traffic.timeline()
    low, high = sorted((a, b))
    assert timeline.cut(low, high, limit) == slow_cut(timeline, low, high, limit)


@given(traffics(), st.integers(1, 400))
@settings(max_examples=25, deadline=None)
def test_cuts_reach_the_end(traffic: Traffic, limit: int):
    timeline = traffic.timeline()
    now, end, read = START_US - 1, START_US + 500_000, 0
    while now < end:
        then = timeline.cut(now, end, limit)
        taken = len(timeline.arrived(now, then))
        assert taken > 0 or then == end
        now, read = then, read + taken
    assert read == timeline.count(end)


@pytest.mark.parametrize("limit", [1, 9_999, 30_000, 59_000])
def test_cut_where_many_rows_are_under_way(limit: int):
    traffic = Traffic(start_s=START_S, rate="200000", delays="exponential:40ms", partitions=2)
    timeline = traffic.timeline()
    low, high = START_US + 1_000_000, START_US + 1_300_000
    assert timeline.cut(low, high, limit) == slow_cut(timeline, low, high, limit)


def test_cut_takes_rows_of_one_microsecond_together():
    timeline = Traffic(start_s=START_S, rate="4000000", delays="constant:0ms").timeline()
    cut = timeline.cut(START_US + 10, START_US + 1000, limit=1)
    assert cut == START_US + 11
    assert len(timeline.arrived(START_US + 10, cut)) in (3, 4, 5)


def test_cut_does_not_walk_through_the_backlog(monkeypatch: pytest.MonkeyPatch):
    timeline = Traffic(start_s=START_S, rate="10000").timeline()
    drawn = []
    draw = timeline._block
    monkeypatch.setattr(timeline, "_block", lambda *place: drawn.append(place) or draw(*place))
    timeline.cut(START_US, START_US + 86_400_000_000, limit=5000)
    assert len(set(drawn)) < 10


def test_a_stream_does_not_depend_on_what_was_read_before():
    traffic = Traffic(start_s=START_S, delays="gamma:60:4ms", partitions=2)
    used = traffic.timeline()
    for second in range(20):
        used.count(START_US + second * 1_000_000)
    window = (START_US + 3_000_000, START_US + 3_200_000)
    assert rows(used.arrived(*window)) == rows(traffic.timeline().arrived(*window))


def test_seeds_and_partitions_differ():
    first, second = (
        Traffic(start_s=START_S, seed=seed, partitions=2).timeline() for seed in (1, 2)
    )
    window = (START_US, START_US + 1_000_000)
    assert rows(first.arrived(*window)) != rows(second.arrived(*window))
    delays = [
        (a.arrival_us - a.event_us)[:50].tolist()
        for a in (first.arrived(*window, p) for p in (0, 1))
    ]
    assert delays[0] != delays[1]
