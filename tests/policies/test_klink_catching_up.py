"""History, long windows and rows that pile up."""

from dataclasses import replace

from slackwater import policies
from slackwater.core import QuerySpec, Snapshot
from slackwater.statistics.batch_cost import BatchCost
from tests.policies.fleet_script import START, Scripted, run, windows
from tests.policies.test_klink import NOW, query

HOUR_S = 3600.0


class History(Scripted):
    """Reads ten minutes of events a batch, and tells how old they are."""

    def _after_batch(self, before):  # type: ignore[no-untyped-def]
        event_s = START - 40 * HOUR_S + 600.0 * len(self.begun_s)
        found = super()._after_batch(before)
        if not self.reads:
            return found
        mark_s = event_s - 0.3
        return replace(found, max_event_s=event_s, next_watermark_s=mark_s)


def test_history_is_read_beside_a_running_batch() -> None:
    replay = History(QuerySpec("replay", max_wait_s=9000.0, deadlines=windows(HOUR_S)))
    other = Scripted(QuerySpec("other", max_wait_s=100.0), batch_s=0.9)
    run(policies.load("klink"), [replay, other], 60)
    assert len(replay.begun_s) > 150


def test_history_is_followed_by_a_look_that_finds_its_end() -> None:
    """Who waits for all that is there to be read waits for a trigger that finds nothing."""
    replay = History(QuerySpec("replay", max_wait_s=9000.0, deadlines=windows(HOUR_S)))
    replay.arrives = lambda since_s, now_s: len(replay.begun_s) < 12
    run(policies.load("klink"), [replay], 20)
    assert 12 <= len(replay.begun_s) <= 14  # the last may only emit
    assert len(replay.looks_s) > len(replay.begun_s)


class Unordered(Scripted):
    """Reads a file of one row a batch, from whatever time."""

    def _after_batch(self, before):  # type: ignore[no-untyped-def]
        event_s = START - 40 * HOUR_S
        return replace(
            super()._after_batch(before), max_event_s=event_s, next_watermark_s=event_s - 0.3
        )


def test_history_in_no_order_is_read_without_a_pause() -> None:
    spec = QuerySpec("files", max_wait_s=9000.0, deadlines=windows(HOUR_S))
    files = Unordered(spec, rate=1e6, limit=1.0)
    files.arrives = lambda since_s, now_s: len(files.begun_s) < 40
    run(policies.load("klink"), [files], 30)
    assert len(files.begun_s) >= 40
    assert len(files.looks_s) > len(files.begun_s)


def test_long_windows_are_drained_on_a_busy_fleet() -> None:
    long = Scripted(
        QuerySpec("long", max_wait_s=9000.0, deadlines=windows(HOUR_S)),
        told={"arrival_rate": 1000.0, "batch_per_row_s": 1e-4, "backlog_rows": 0.0},
    )
    busy = [
        Scripted(QuerySpec(f"p{n}", max_wait_s=100.0), batch_s=0.9, told={"backlog_rows": 0.0})
        for n in range(3)
    ]
    run(policies.load("klink"), [long, *busy], 120)
    assert max(long.gaps_s()) < 30


def test_a_drain_finds_out_what_rows_cost() -> None:
    """With steady batches all cost seems fixed, and an hour of rows would cost no more."""
    long = Scripted(
        QuerySpec("long", max_wait_s=9000.0, deadlines=windows(HOUR_S)),
        told={"arrival_rate": 1000.0, "backlog_rows": 0.0},
    )
    run(policies.load("klink"), [long], 120)
    assert len(long.begun_s) >= 3


def test_rows_that_came_since_the_last_batch_count() -> None:
    heavy = {"batch_per_row_s": 1e-5, "backlog_rows": 0.0, "arrival_rate": 1000.0, "batch_s": 0.2}
    waiting = query("waiting", end_s=NOW - 0.5, slide_s=3600.0, batch_start_s=NOW - 3500, **heavy)
    admission = policies.load("klink").decide(Snapshot(NOW, 1, (waiting,))).admissions[0]
    assert admission.figures is not None
    assert 30 < (admission.figures.cost_s or 0.0) < 40


def test_a_query_that_is_met_while_it_runs_has_not_found_nothing() -> None:
    """Its windows are discovered during its first batch."""
    spec = QuerySpec("files", max_wait_s=9000.0)
    files = Unordered(spec, rate=1e6, limit=1.0)
    policy = policies.load("klink")
    run(policy, [files], 0.1)
    found = replace(spec, deadlines=windows(HOUR_S))
    files.spec, files.state = found, replace(files.state, spec=found)
    run(policy, [files], 10)
    assert len(files.begun_s) > 20


def test_queries_that_catch_up_leave_room_for_a_window_that_has_just_ended() -> None:
    """Every batch of theirs emits something, of long ago."""

    def hours_ago(now_s: float) -> float:
        return START - 36_000.0 + 60.0 * (now_s - START)

    replays = [
        Scripted(
            QuerySpec(f"r{n}", max_wait_s=60.0, deadlines=windows(3.0)),
            frontier_s=hours_ago,
            told={"backlog_rows": 1e6, "arrival_rate": 1000.0},
        )
        for n in range(6)
    ]
    fresh = Scripted(
        QuerySpec("fresh", max_wait_s=60.0, deadlines=windows(3.0)), told={"backlog_rows": 0.0}
    )
    run(policies.load("klink"), [*replays, fresh], 60)
    assert max(fresh.gaps_s()) < 5.0


class Large(Scripted):
    """Its batches take time for each row; what they cost is measured as Spark's is."""

    per_row_s = 0.003
    fixed_s = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cost = BatchCost()

    def admit(self, now_s: float) -> None:
        super().admit(now_s)
        if self.begun_s and self.begun_s[-1] == now_s:
            since_s = self.state.metrics.batch_start_s or START - 1.0
            self.batch_s = self.fixed_s + self.per_row_s * self.rate * (now_s - since_s)
            self.ends_s = now_s + self.batch_s

    def _after_batch(self, before):  # type: ignore[no-untyped-def]
        found = super()._after_batch(before)
        self.cost.update(found.rows - before.rows, self.batch_s)
        costs = {"batch_fixed_s": self.cost.fixed_s, "batch_per_row_s": self.cost.per_row_s}
        # Its windows take one batch each.
        mark_s = found.next_watermark_s
        return replace(found, arrival_rate=self.rate, watermark_s=mark_s, **costs)


def test_a_long_batch_is_taken_apart_once_a_trial_has_shown_that_it_can_be() -> None:
    """Nobody else gets Spark's cores while it runs."""
    spec = QuerySpec("large", max_wait_s=100.0, deadlines=windows(10.0), one_batch=True)
    large = Large(spec, rate=100.0)
    run(policies.load("klink"), [large], 120)
    gaps_s = large.gaps_s(START + 60)
    assert max(gaps_s) < 4.0
    assert len(gaps_s) <= 60  # nor more often than helps


def test_a_long_batch_that_cannot_be_taken_apart_is_tried_less_and_less_often() -> None:
    spec = QuerySpec("fixed", max_wait_s=100.0, deadlines=windows(10.0), one_batch=True)
    fixed = Large(spec, rate=100.0)
    fixed.per_row_s, fixed.fixed_s = 0.0, 3.0
    run(policies.load("klink"), [fixed], 600)
    early = sum(at_s < START + 200 for at_s in fixed.begun_s)
    late = sum(at_s >= START + 400 for at_s in fixed.begun_s)
    assert early > 22  # of twenty windows
    assert late <= 22
