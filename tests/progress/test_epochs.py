"""Which window is next and what it needs, from scripted metrics."""

import math
from dataclasses import replace

import pytest

from slackwater import progress
from slackwater.core import Deadlines, InputStream, QueryMetrics, Window
from slackwater.progress.epochs import PATIENCE, RETRY_S, QueryEpochs

TUMBLING = Deadlines(
    (Window("tumbling", 3.0, 3.0),), (InputStream("feed", "t", watermark_delay_s=0.3),)
)


def epochs(deadlines: Deadlines = TUMBLING) -> QueryEpochs:
    return QueryEpochs(deadlines, lambda: progress.load("calibrated"))


def metrics(
    batch: int, start_s: float, ran_s: float | None, coming_s: float, **more: object
) -> QueryMetrics:
    return QueryMetrics(
        batches=batch,
        rows=1000 * batch,
        batch_start_s=start_s,
        watermark_s=ran_s,
        next_watermark_s=coming_s,
        **more,  # type: ignore[arg-type]
    )


def test_a_window_is_learnt_swept_and_emitted() -> None:
    query = epochs()
    assert query.stage == "learn"
    query.update(metrics(1, start_s=10.0, ran_s=9.5, coming_s=9.68))
    assert (query.stage, query.window_end_s, query.base_s) == ("sweep", 12.0, pytest.approx(12.3))
    query.update(metrics(2, start_s=12.35, ran_s=9.68, coming_s=12.03))
    assert (query.stage, query.window_end_s) == ("emit", 12.0)
    query.update(metrics(3, start_s=12.6, ran_s=12.03, coming_s=12.03))
    assert (query.stage, query.window_end_s) == ("sweep", 15.0)


def test_in_update_mode_the_sweep_itself_shows_the_result() -> None:
    query = epochs(replace(TUMBLING, output_mode="update"))
    query.update(metrics(1, start_s=12.35, ran_s=9.68, coming_s=12.03))
    assert (query.stage, query.window_end_s) == ("sweep", 15.0)


def test_of_several_windows_the_next_to_end_counts() -> None:
    both = (Window("tumbling", 3.0, 3.0), Window("sliding", 5.0, 2.0, offset_s=0.5))
    query = epochs(replace(TUMBLING, windows=both))
    query.update(metrics(1, start_s=10.0, ran_s=9.4, coming_s=9.4))
    assert query.window_end_s == 9.5  # 0.5 + 5 + 2 × 2
    query.update(metrics(2, start_s=10.4, ran_s=9.6, coming_s=9.6))
    assert query.window_end_s == 11.5


def test_without_watermark_or_window_there_is_no_deadline() -> None:
    query = epochs(Deadlines((Window("tumbling", 3.0, 3.0),), (InputStream("feed"),)))
    query.update(metrics(1, 10.0, None, 9.0))
    assert query.stage == "free"


def test_the_estimate_is_the_frontier_lag_whatever_the_engine_tells() -> None:
    told, seen = epochs(), epochs()
    for batch in range(1, 30):
        start_s = 10.0 + batch
        lag_s = 0.02 + 0.001 * (batch % 5)
        newest_s = start_s - lag_s
        told.update(metrics(batch, start_s, newest_s - 1.3, newest_s - 0.3))
        only_seen = metrics(batch, start_s, newest_s - 1.3, 0.0, max_event_s=newest_s)
        seen.update(replace(only_seen, next_watermark_s=None))
    assert told.arrival is not None
    assert seen.arrival is not None
    assert told.arrival.mean_s == pytest.approx(0.022, abs=0.002)
    assert seen.arrival.mean_s == pytest.approx(told.arrival.mean_s)


def test_batches_without_data_and_limited_ones_teach_nothing() -> None:
    query = epochs()
    query.update(metrics(1, 10.0, 9.5, 9.68))
    before = query.arrival
    without_data = replace(metrics(2, 11.0, 9.68, 9.68), rows=1000)
    query.update(without_data)
    assert query.arrival is before
    query.update(metrics(3, 12.0, 9.68, 10.0, backlog_rows=50_000.0))
    assert query.arrival is before


def test_the_last_input_decides_when_a_sweep_is_due_the_first_orders() -> None:
    joined = replace(TUMBLING, inputs=(TUMBLING.inputs[0], InputStream("other", "t", 0.3)))
    query = epochs(joined)
    for batch in range(1, 20):
        start_s = 10.0 + batch
        early_s, late_s = start_s - 0.32, start_s - 0.9  # watermarks of the two inputs
        query.update(
            metrics(batch, start_s, late_s - 1, late_s, input_watermarks_s=(early_s, late_s))
        )
    assert query.arrival is not None
    assert query.arrival.mean_s == pytest.approx(0.6, abs=0.01)
    assert min(one.mean_s for one in query.first_arrivals) == pytest.approx(0.02, abs=0.01)
    assert query.ready_s(0.2, -math.inf) >= query.base_s + 0.6


def test_a_sweep_that_came_too_early_is_tried_again_soon_then_less_often() -> None:
    query = epochs()
    for batch in range(1, 20):
        query.update(metrics(batch, 10.0 + batch, 9.0 + batch, 9.68 + batch))
    base_s = query.base_s
    assert query.ready_s(0.2, base_s - 1) < base_s + 0.1
    soon_s = query.ready_s(0.2, base_s + 0.03)
    assert base_s + 0.03 + RETRY_S <= soon_s < base_s + 0.2
    late_s = query.ready_s(0.2, base_s + 8.0)
    assert late_s == pytest.approx(base_s + 8.0 * (1 + PATIENCE))
    very_late_s = query.ready_s(0.2, base_s + 80.0)
    assert very_late_s == pytest.approx(base_s + 80.0 + query.period_s)


def test_a_join_with_an_input_that_never_had_an_event_is_still_to_be_learnt() -> None:
    joined = replace(TUMBLING, inputs=(TUMBLING.inputs[0], InputStream("dry", "t", 0.3)))
    query = epochs(joined)
    query.update(metrics(1, 10.0, None, 0.0, max_event_s=9.98, input_watermarks_s=(9.68, 0.0)))
    assert query.stage == "learn"


def test_without_a_look_inside_a_join_is_followed_by_the_watermark_it_ran_with() -> None:
    joined = replace(TUMBLING, inputs=(TUMBLING.inputs[0], InputStream("other", "t", 0.3)))
    query = epochs(joined)
    for batch in range(1, 9):
        start_s = 10.0 + batch
        ran_s = start_s - 1.0 - 0.35  # what the batch a second ago had read
        one = metrics(batch, start_s, ran_s, 0.0, max_event_s=start_s)
        query.update(replace(one, next_watermark_s=None))
    assert query.stage == "sweep"
    assert query.arrival is not None
    assert query.arrival.mean_s == pytest.approx(0.05, abs=0.01)


def test_sessions_have_no_known_end() -> None:
    sessions = replace(TUMBLING, windows=(Window("session", 5.0, 5.0),))
    assert epochs(sessions).stage == "free"


def joined(policy_max: bool, delays_s: tuple[float, float] = (1.0, 30.0)) -> QueryEpochs:
    """Return two inputs that are equally far after some batches."""
    streams = tuple(InputStream(f"s{n}", "t", d) for n, d in enumerate(delays_s))
    query = epochs(Deadlines(TUMBLING.windows, streams))
    before_s = None
    for batch in range(1, 6):
        parts_s = tuple(100.0 + batch - 0.02 - delay_s for delay_s in delays_s)
        coming_s = max(parts_s) if policy_max else min(parts_s)
        query.update(metrics(batch, 100.0 + batch, before_s, coming_s, input_watermarks_s=parts_s))
        before_s = coming_s
    return query


def test_the_largest_watermark_counts_where_spark_takes_it() -> None:
    smallest, largest = joined(policy_max=False), joined(policy_max=True)
    assert smallest.base_s - smallest.window_end_s == 30.0
    assert largest.base_s - largest.window_end_s == 1.0
    assert largest.arrival is not None
    assert largest.interval_s[1] < 1.0


def test_producers_whose_clocks_run_ahead_are_expected_ahead() -> None:
    query = epochs()
    for batch in range(1, 30):
        start_s = 100.0 + batch
        newest_s = start_s + 5.0 - 0.02 * (batch % 3)
        query.update(metrics(batch, start_s, newest_s - 1.3, newest_s - 0.3))
    ready_s = query.ready_s(waste_s=0.2, last_try_s=query.last_read_s)
    assert ready_s == pytest.approx(query.window_end_s + 0.3 - 5.0, abs=0.3)
    tried_s = query.ready_s(waste_s=0.2, last_try_s=ready_s + 0.1)
    assert tried_s > ready_s + 0.1


def test_a_silent_input_teaches_nothing() -> None:
    """Batches of a join go on, its watermark stands still: that is no lag of the stream."""
    query = epochs()
    for batch in range(1, 30):
        start_s = 100.0 + batch
        query.update(metrics(batch, start_s, start_s - 1.35, start_s - 0.35))
    known_s = query.interval_s[1]
    for batch in range(30, 90):
        query.update(metrics(batch, 100.0 + batch, 128.65, 128.65))
    assert query.arrival is not None
    assert query.arrival.mean_s < 0.5
    assert query.interval_s[1] < known_s + 3.5


def replay(speed: float, lag_s: float, batches: int = 6) -> QueryEpochs:
    """Return an hour's windows over a source that tells no backlog."""
    hour = replace(TUMBLING, windows=(Window("tumbling", 3600.0, 3600.0),))
    query = epochs(hour)
    for batch in range(1, batches + 1):
        start_s = 100_000.0 + batch
        newest_s = start_s - lag_s + (speed - 1) * batch
        query.update(metrics(batch, start_s, newest_s - 1, newest_s - 0.3, max_event_s=newest_s))
    return query


def test_history_is_read_without_a_pause() -> None:
    assert replay(speed=60.0, lag_s=20_000.0).behind
    assert replay(speed=60.0, lag_s=20_000.0).ready_s(0.2, 100_006.0) == 0.0
    assert replay(speed=1.0, lag_s=20_000.0, batches=1).behind  # nobody knows yet


def test_who_is_level_or_always_as_late_is_not_behind() -> None:
    assert not replay(speed=1.0, lag_s=0.1).behind
    assert not replay(speed=1.0, lag_s=600.0).behind


def test_history_ends_where_nothing_more_is_found() -> None:
    query = replay(speed=60.0, lag_s=20_000.0)
    query.find_nothing(100_007.0)
    assert not query.behind
