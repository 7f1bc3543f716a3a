"""Queries without windows and live tables: as fresh as promised, or as the machine can."""

import math
from dataclasses import replace
from itertools import pairwise

from slackwater import policies
from slackwater.core import QueryMetrics, QuerySpec, QueryState, Snapshot, Window
from tests.policies.fleet_script import START, Scripted, run, windows


def klink() -> policies.Policy:
    return policies.load("klink")


def test_a_live_table_over_long_windows_is_refreshed() -> None:
    table = Scripted(QuerySpec("table", max_wait_s=9000.0, deadlines=windows(3600.0, "update")))
    run(klink(), [table], 40)
    assert max(table.gaps_s()) < 2.0


def test_a_target_is_kept_with_the_fewest_batches() -> None:
    plain = Scripted(QuerySpec("plain", max_wait_s=100.0, target_s=5.0))
    table = Scripted(
        QuerySpec("table", max_wait_s=9000.0, deadlines=windows(3600.0, "update"), target_s=5.0)
    )
    run(klink(), [plain, table], 60)
    for query in (plain, table):
        assert max(query.gaps_s()) + query.batch_s <= 5.0
        assert min(query.gaps_s()) > 3.5


def test_what_the_source_adds_to_the_age_counts_where_it_is_known() -> None:
    """A source delivers once a second: what is read is up to a second old, then it is shown."""

    def ticks(since_s: float, now_s: float) -> bool:
        return int(since_s) != int(now_s)

    spec = QuerySpec("plain", max_wait_s=100.0, target_s=2.0)
    told = {"backlog_rows": 0.0}
    plain = Scripted(spec, arrives=ticks, frontier_s=math.floor, newest=True, told=told)
    run(klink(), [plain], 60)
    done_s = [at_s + plain.batch_s for at_s in plain.begun_s[5:]]
    ages_s = [done - math.floor(shown) for shown, done in pairwise(plain.begun_s[4:])]
    assert len(done_s) > 40
    assert max(ages_s) + plain.batch_s <= 2.0
    assert len(plain.begun_s) <= 62  # one a delivery: more would show nothing newer


def test_an_age_beyond_the_target_is_not_chased() -> None:
    """Events are five seconds old when they come: no number of batches makes them two."""
    spec = QuerySpec("plain", max_wait_s=100.0, target_s=2.0)
    told = {"backlog_rows": 0.0}
    plain = Scripted(spec, frontier_s=lambda now_s: now_s - 5.0, newest=True, told=told)
    run(klink(), [plain], 60)
    assert min(plain.gaps_s()) > 0.5


def test_an_idle_machine_refreshes_often_and_a_busy_one_what_is_left() -> None:
    alone = Scripted(QuerySpec("alone", max_wait_s=100.0))
    run(klink(), [alone], 30)
    many = [Scripted(QuerySpec(f"q{n}", max_wait_s=100.0)) for n in range(16)]
    run(klink(), many, 60)
    assert max(alone.gaps_s()) < 1.0
    slowest = max(max(query.gaps_s(START + 20)) for query in many)
    assert 1.0 < slowest < 4.0
    busy_s = sum(0.2 * len(query.begun_s) for query in many)
    assert busy_s < 0.9 * 3 * 60  # what is left is not all taken


def test_the_important_are_fresher() -> None:
    first = Scripted(QuerySpec("first", priority=4.0, max_wait_s=100.0))
    others = [Scripted(QuerySpec(f"q{n}", max_wait_s=100.0)) for n in range(12)]
    run(klink(), [first, *others], 60)
    assert 2.5 * len(others[0].begun_s) < len(first.begun_s)


def test_deadlines_go_before_freshness() -> None:
    windowed = [Scripted(QuerySpec(f"w{n}", deadlines=windows(3.0)), batch_s=0.4) for n in range(3)]
    plain = [Scripted(QuerySpec(f"p{n}", max_wait_s=100.0), batch_s=0.4) for n in range(6)]
    run(klink(), windowed + plain, 60)
    for query in windowed:
        late = [at_s % 3.0 for at_s in query.begun_s if at_s > START + 15]
        first = [lag for lag in late if lag < 1.5]  # sweeps; the emits follow
        assert min(first) < 0.45
        assert sum(first) / len(first) < 1.0


def test_a_source_that_delivers_once_a_second_is_looked_at_little_more_often() -> None:
    def ticks(since_s: float, now_s: float) -> bool:
        return int(since_s) != int(now_s)

    plain = Scripted(QuerySpec("plain", max_wait_s=100.0), arrives=ticks)
    run(klink(), [plain], 60)
    assert len(plain.begun_s) > 50
    assert len(plain.looks_s) < 1.6 * len(plain.begun_s)


def test_what_is_delivered_at_known_times_is_shown_at_once_where_nothing_is_promised() -> None:
    """On an idle machine Spark itself would look all the time, and show it as soon."""
    phase_s = 0.63

    def last_tick_s(now_s: float) -> float:
        return math.floor(now_s - phase_s) + phase_s

    def ticks(since_s: float, now_s: float) -> bool:
        return last_tick_s(since_s) < last_tick_s(now_s)

    specs = (
        QuerySpec("plain", max_wait_s=100.0),
        QuerySpec("table", max_wait_s=9000.0, deadlines=windows(3600.0, "update")),
    )
    for spec in specs:
        told = {"backlog_rows": 0.0}
        query = Scripted(spec, arrives=ticks, frontier_s=last_tick_s, newest=True, told=told)
        run(klink(), [query], 120)
        begun_s = [at_s for at_s in query.begun_s if at_s > START + 60]
        late_s = [at_s - last_tick_s(at_s) for at_s in begun_s]
        assert len(begun_s) >= 58
        assert sum(late_s) / len(late_s) < 0.1, spec.name
        looks = sum(at_s > START + 60 for at_s in query.looks_s)
        assert looks < 1.2 * len(begun_s), spec.name


def test_a_source_that_stops_ticking_is_looked_at_as_any_other() -> None:
    """Its deliveries come at another phase, then without pause."""
    begins_s = START + 60.0

    def frontier_s(now_s: float) -> float:
        return math.floor(now_s) if now_s < begins_s else now_s - 0.05

    def arrives(since_s: float, now_s: float) -> bool:
        return frontier_s(since_s) < frontier_s(now_s)

    spec = QuerySpec("plain", max_wait_s=100.0)
    told = {"backlog_rows": 0.0}
    query = Scripted(spec, arrives=arrives, frontier_s=frontier_s, newest=True, told=told)
    run(klink(), [query], 120)
    assert max(query.gaps_s(begins_s + 10)) < 0.5


def test_a_source_that_does_not_tell_what_waits_is_caught_up_with() -> None:
    """It hands out so much a batch: who waits between two batches stays behind for ever."""
    files = Scripted(QuerySpec("files", max_wait_s=100.0), rate=1e6, limit=100.0)
    others = [
        Scripted(QuerySpec(f"q{n}", max_wait_s=100.0), told={"backlog_rows": 0.0}) for n in range(6)
    ]
    run(klink(), [files, *others], 30)
    assert len(files.begun_s) > 2 * len(others[0].begun_s)


def test_rows_that_wait_are_read_at_once() -> None:
    behind = Scripted(QuerySpec("behind", max_wait_s=100.0), told={"backlog_rows": 1e5})
    run(klink(), [behind], 20)
    assert max(behind.gaps_s()) < 0.3


def test_a_trigger_s_interval_is_kept_however_busy_the_machine() -> None:
    """It comes to its gate when its interval is over: then it is due."""
    timed = Scripted(
        QuerySpec("timed", max_wait_s=100.0, trigger_s=1.0), told={"backlog_rows": 0.0}
    )
    others = [
        Scripted(QuerySpec(f"q{n}", max_wait_s=100.0), told={"backlog_rows": 0.0})
        for n in range(30)
    ]
    run(klink(), [timed, *others], 60)
    assert sum(timed.gaps_s()) / len(timed.gaps_s()) < 1.2
    assert 2 * len(others[0].begun_s) < len(timed.begun_s)


def test_sessions_come_out_with_the_batch_after_the_one_that_ends_them() -> None:
    sessions = replace(windows(3.0), windows=(Window("session", 2.0, 2.0),))
    spec = QuerySpec("sessions", deadlines=sessions, target_s=6.0)
    query = Scripted(spec, told={"backlog_rows": 0.0})
    run(klink(), [query], 60)
    gaps_s = query.gaps_s()
    assert sum(gap_s < 0.3 for gap_s in gaps_s) >= 0.4 * len(gaps_s)
    assert sum(gap_s > 3.0 for gap_s in gaps_s) >= 0.4 * len(gaps_s)


def test_a_slow_sink_is_refreshed_as_soon_as_it_can() -> None:
    """Its batches are long, but they take a slot for a moment only."""
    told = {"backlog_rows": 0.0}
    slow = Scripted(QuerySpec("slow", max_wait_s=100.0), batch_s=6.0, sleeps=True, told=told)
    others = [Scripted(QuerySpec(f"q{n}", max_wait_s=100.0), told=told) for n in range(9)]
    run(klink(), [slow, *others], 120)
    assert max(slow.gaps_s(START + 40)) < 7.5
    assert max(max(query.gaps_s(START + 40)) for query in others) < 3.0


def test_rows_to_come_by_the_window_s_end_do_not_make_a_refresh_dear() -> None:
    """What a live table will have cost by the end of its long window is not what a batch costs."""
    told = {"backlog_rows": 0.0, "arrival_rate": 100.0}
    aligned = [
        Scripted(QuerySpec(f"w{n}", deadlines=windows(10.0)), batch_s=0.4, told=told)
        for n in range(12)
    ]
    tables = [
        Scripted(
            QuerySpec(f"t{n}", max_wait_s=150.0, deadlines=windows(60.0, "update")),
            batch_s=0.4,
            told=told | {"batch_per_row_s": 0.002},
        )
        for n in range(3)
    ]
    plain = [Scripted(QuerySpec(f"p{n}", max_wait_s=100.0), batch_s=0.4) for n in range(5)]
    run(klink(), [*aligned, *tables, *plain], 120)
    slowest, others = (
        max(max(query.gaps_s(START + 30)) for query in fleet) for fleet in (tables, plain)
    )
    assert slowest < 1.3 * others


def test_one_batch_that_stood_behind_others_makes_nobody_wait_for_its_next_refresh() -> None:
    class Stalled(Scripted):
        def admit(self, now_s: float) -> None:
            super().admit(now_s)
            if len(self.begun_s) == 20:
                self.ends_s = now_s + 3.0

        def _after_batch(self, before):  # type: ignore[no-untyped-def]
            took_s = 3.0 if len(self.begun_s) == 20 else self.batch_s
            return replace(super()._after_batch(before), batch_s=took_s)

    table = Stalled(QuerySpec("table", max_wait_s=100.0))
    others = [Scripted(QuerySpec(f"t{n}", max_wait_s=100.0)) for n in range(5)]
    run(klink(), [table, *others], 60)
    assert table.begun_s[20] - table.begun_s[19] < 4.0


def test_a_batch_without_rows_does_not_make_a_query_seem_cheap() -> None:
    """In update mode Spark runs one after each step of the watermark."""
    policy = klink()
    long_s, empty_s = 2.0, 0.1

    def shows(batches: int, rows: int, batch_s: float) -> QueryState:
        told = {"batch_s": batch_s, "batch_fixed_s": long_s, "batch_start_s": START + batches}
        metrics = QueryMetrics(batches=batches, rows=rows, backlog_rows=0.0, **told)
        spec = QuerySpec("table", max_wait_s=100.0)
        return QueryState(spec, "waiting", START + batches, metrics=metrics, admissions=batches)

    for number in range(1, 9):
        batch_s = long_s if number % 2 else empty_s
        state = shows(number, 100 * ((number + 1) // 2), batch_s)
        policy.decide(Snapshot(START + number, 2, (state,)))
    assert policy.outlook(START + 9)["table"].cost_s == long_s


def test_event_times_of_whole_seconds_are_no_deliveries() -> None:
    """A stream whose times are coarse brings rows all the time."""
    spec = QuerySpec("plain", max_wait_s=100.0)
    told = {"backlog_rows": 0.0}
    query = Scripted(spec, frontier_s=math.floor, newest=True, told=told)
    run(klink(), [query], 120)
    assert max(query.gaps_s(START + 60)) < 0.5


def test_a_delivery_does_not_make_a_busy_machine_refresh_more_often() -> None:
    """What the load allows comes first, then the next delivery."""

    def ticks(since_s: float, now_s: float) -> bool:
        return int(since_s) != int(now_s)

    told = {"backlog_rows": 0.0}
    queries = [
        Scripted(
            QuerySpec(f"q{number}", max_wait_s=100.0),
            arrives=ticks,
            frontier_s=math.floor,
            newest=True,
            told=told,
        )
        for number in range(20)
    ]
    run(klink(), queries, 120)
    busy_s = sum(0.2 * sum(at_s > START + 60 for at_s in query.begun_s) for query in queries)
    assert busy_s < 0.9 * 3 * 60
