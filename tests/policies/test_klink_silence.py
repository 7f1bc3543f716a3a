"""Sources that fall silent: they are not urgent, and looking at them costs little."""

from dataclasses import dataclass, replace

import pytest

from slackwater import policies
from slackwater.core import Deadlines, QuerySpec, Snapshot
from tests.policies.fleet_script import START, Scripted, run, windows

SILENT_S = START + 20


def before_silence(since_s: float, now_s: float) -> bool:
    return since_s < SILENT_S


def mean_s(delays_s: list[float]) -> float:
    return sum(delays_s) / len(delays_s)


def sweep_delays_s(query: Scripted, slide_s: float = 3.0) -> list[float]:
    """Return how long after each window's end (and the watermark's delay) it was first read."""
    found: dict[int, float] = {}
    for at_s in query.begun_s:
        if at_s > START + 60:
            found.setdefault(int((at_s - 0.3) // slide_s), (at_s - 0.3) % slide_s)
    return list(found.values())


def test_dry_sources_do_not_go_before_a_sweep_that_finds_something() -> None:
    dry = [
        Scripted(
            QuerySpec(f"a{n}", max_wait_s=1000.0, deadlines=windows(3.0)), arrives=before_silence
        )
        for n in range(4)
    ]
    healthy = Scripted(QuerySpec("healthy", deadlines=windows(3.0)))
    run(policies.load("klink"), [*dry, healthy], 180, slots=1)
    delays_s = sweep_delays_s(healthy)
    assert len(delays_s) > 35
    assert mean_s(delays_s) < 0.15


def test_hundreds_of_idle_queries_leave_the_slots_to_others() -> None:
    idle = [
        Scripted(
            QuerySpec(f"i{n}", deadlines=windows(3.0) if n % 2 else windows(3.0, "update")),
            arrives=before_silence if n % 3 else lambda since_s, now_s: False,
        )
        for n in range(200)
    ]
    alone, busy = (
        [Scripted(QuerySpec(f"b{n}", deadlines=windows(3.0))) for n in range(4)] for _ in range(2)
    )
    run(policies.load("klink"), alone, 100)
    run(policies.load("klink"), [*idle, *busy], 100)
    looks = sum(at_s > START + 70 for query in idle for at_s in query.looks_s)
    assert looks / 30 < 12  # a second: each 10 ms of CPU time, on two cores
    alone_s, busy_s = (sum(map(mean_s, map(sweep_delays_s, fleet))) for fleet in (alone, busy))
    assert busy_s < 1.2 * alone_s


def test_a_join_with_one_silent_input_is_not_urgent() -> None:
    """Its batches are full, but its watermark stands still."""
    joins = [
        Scripted(
            QuerySpec(f"j{n}", max_wait_s=1000.0, deadlines=windows(3.0)),
            frontier_s=lambda now_s: min(now_s, SILENT_S) - 0.02,
        )
        for n in range(3)
    ]
    healthy = Scripted(QuerySpec("healthy", deadlines=windows(3.0)))
    run(policies.load("klink"), [*joins, healthy], 180, slots=1)
    delays_s = sweep_delays_s(healthy)
    assert mean_s(delays_s) < 0.2
    later = sum(at_s > START + 120 for query in joins for at_s in query.begun_s)
    assert later < 15  # batches in a minute


def test_a_source_that_comes_back_is_found_soon() -> None:
    back_s = START + 80

    def arrives(since_s: float, now_s: float) -> bool:
        return since_s < SILENT_S or now_s > back_s

    one = Scripted(QuerySpec("one", deadlines=windows(3.0)), arrives=arrives)
    plain = Scripted(QuerySpec("plain", max_wait_s=100.0), arrives=arrives)
    run(policies.load("klink"), [one, plain], 100)
    for query in (one, plain):
        assert next(at_s for at_s in query.begun_s if at_s > back_s) < back_s + 5


IDLE_AFTER_S = 5.0
SLIDE_S, DELAY_S = 3.0, 0.3


@dataclass
class Idle(Scripted):
    """A query whose watermark follows the clock once looks have seen nothing new for long enough.

    Where its source is asked (``one_batch``), a look that finds nothing begins no batch.
    """

    silent_from_s: float | None = None  # as seen by looks
    raised_s: float = 0.0

    def admit(self, now_s: float) -> None:
        told = self.arrives(self._looked_s, now_s)
        if told or self.silent_from_s is None:
            self.silent_from_s = now_s
        lasts = now_s - self.silent_from_s >= IDLE_AFTER_S
        self.raised_s = now_s - IDLE_AFTER_S - DELAY_S if lasts else 0.0
        marks = self.state.metrics
        # A raised watermark alone makes Spark run a batch without data.
        if self.raised_s > (marks.next_watermark_s or 0.0) and not told:
            self.state = replace(self.state, metrics=replace(marks, next_watermark_s=self.raised_s))
        super().admit(now_s)


@pytest.mark.parametrize("one_batch", [False, True])
@pytest.mark.parametrize("phase_s", [0.0, 0.7, 1.9])
def test_a_window_of_a_silent_source_closes_as_soon_as_it_may(
    one_batch: bool, phase_s: float
) -> None:
    """The last row's window: its end, the delay, and the time of silence.

    Whose source cannot be asked is silent from the batch on that has read its last row.
    """
    silent_s = SILENT_S + phase_s
    spec = QuerySpec(
        "q", deadlines=windows(SLIDE_S), idle_after_s=IDLE_AFTER_S, one_batch=one_batch
    )
    query = Idle(spec, arrives=lambda since_s, now_s: since_s < silent_s)
    run(policies.load("klink"), [query], 60)
    last_end_s = (silent_s // SLIDE_S + 1) * SLIDE_S
    allowed_s = last_end_s + DELAY_S + IDLE_AFTER_S
    closed = [at_s for at_s in query.begun_s if at_s >= allowed_s]
    assert closed[0] < allowed_s + (0.15 if one_batch else 0.3)


def test_other_silent_sources_do_not_keep_a_window_open() -> None:
    spec = QuerySpec("q", deadlines=windows(SLIDE_S), idle_after_s=IDLE_AFTER_S, one_batch=True)
    query = Idle(spec, arrives=before_silence)
    others = [
        Scripted(QuerySpec(f"o{n}", deadlines=windows(SLIDE_S)), arrives=lambda a, b: False)
        for n in range(300)
    ]
    run(policies.load("klink"), [query, *others], 40)
    last_end_s = (SILENT_S // SLIDE_S + 1) * SLIDE_S
    allowed_s = last_end_s + DELAY_S + IDLE_AFTER_S
    assert min(at_s for at_s in query.begun_s if at_s >= allowed_s) < allowed_s + 0.5


NO_WINDOWS, APPEND, UPDATE = Deadlines(), windows(3.0), windows(3.0, "update")
KINDS = pytest.mark.parametrize("deadlines", [NO_WINDOWS, APPEND, UPDATE])


@KINDS
def test_a_source_that_tells_nothing_is_not_looked_at(deadlines: Deadlines) -> None:
    told, untold = (
        Scripted(QuerySpec(name, deadlines=deadlines), arrives=before_silence, tells=tells)
        for name, tells in (("told", True), ("untold", False))
    )
    run(policies.load("klink"), [told, untold], 120)
    looks, others = (
        sum(at_s > SILENT_S + 20 for at_s in query.looks_s) for query in (told, untold)
    )
    assert 1 <= looks <= 4  # a wrong answer costs a bounded time
    assert others > 3 * looks


@KINDS
def test_what_a_source_tells_is_read_at_once(deadlines: Deadlines) -> None:
    back_s = START + 83.3

    def arrives(since_s: float, now_s: float) -> bool:
        return since_s < SILENT_S or now_s > back_s

    query = Scripted(QuerySpec("q", deadlines=deadlines), arrives=arrives, tells=True)
    run(policies.load("klink"), [query], 100)
    assert next(at_s for at_s in query.begun_s if at_s > SILENT_S + 5) < back_s + 0.1
    assert sum(at_s > back_s for at_s in query.begun_s) > 4  # no longer silent


def test_hundreds_that_are_told_nothing_leave_the_slots_to_others() -> None:
    idle = [
        Scripted(
            QuerySpec(f"i{n}", deadlines=NO_WINDOWS if n % 2 else APPEND),
            arrives=before_silence if n % 3 else lambda since_s, now_s: False,
            tells=True,
        )
        for n in range(200)
    ]
    alone, busy = (
        [Scripted(QuerySpec(f"b{n}", deadlines=windows(3.0))) for n in range(4)] for _ in range(2)
    )
    run(policies.load("klink"), alone, 100)
    run(policies.load("klink"), [*idle, *busy], 100)
    looks = sum(at_s > START + 70 for query in idle for at_s in query.looks_s)
    assert looks / 30 < 3  # a second
    alone_s, busy_s = (sum(map(mean_s, map(sweep_delays_s, fleet))) for fleet in (alone, busy))
    assert busy_s < 1.1 * alone_s


def test_one_that_was_told_something_is_not_older_than_what_has_come() -> None:
    """It stood at its gate for long, and nothing waited: it goes by its worth, not as overdue."""
    back_s = START + 80

    def arrives(since_s: float, now_s: float) -> bool:
        return since_s < SILENT_S or now_s > back_s

    idle = [
        Scripted(QuerySpec(f"i{n}", deadlines=NO_WINDOWS), arrives=arrives, tells=True)
        for n in range(30)
    ]
    healthy = Scripted(QuerySpec("healthy", deadlines=windows(3.0)))
    run(policies.load("klink"), [*idle, healthy], 90, slots=1)
    late_s = max(sweep_delays_s(healthy))
    assert late_s < 2.0  # 2.9 if they went as overdue
    assert all(any(at_s > back_s for at_s in query.begun_s) for query in idle)


def test_a_query_whose_windows_the_clock_closes_is_looked_at_as_ever() -> None:
    told = Scripted(
        QuerySpec("told", deadlines=APPEND, idle_after_s=5.0), arrives=before_silence, tells=True
    )
    run(policies.load("klink"), [told], 120)
    assert sum(at_s > SILENT_S + 20 for at_s in told.looks_s) > 15


def test_who_can_no_longer_be_told_is_looked_at_again() -> None:
    policy = policies.load("klink")
    query = Scripted(QuerySpec("q", deadlines=NO_WINDOWS), arrives=before_silence, tells=True)
    run(policy, [query], 70)
    assert query.state.has_input is False
    now_s = START + 70
    assert not policy.decide(Snapshot(now_s, 3, (query.state,))).admissions
    unknown = replace(query.state, has_input=None)
    assert policy.decide(Snapshot(now_s + 5, 3, (unknown,))).admissions


def test_gates_hold_for_as_long_as_nobody_looks() -> None:
    policy = policies.load("klink")
    query = Scripted(QuerySpec("q", deadlines=NO_WINDOWS), arrives=before_silence, tells=True)
    run(policy, [query], 70)
    hold_s = policy.decide(Snapshot(START + 70, 3, (query.state,))).hold_s
    gaps_s = [b - a for a, b in zip(query.looks_s, query.looks_s[1:], strict=False)]
    assert max(gaps_s) < hold_s
