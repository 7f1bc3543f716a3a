"""What micro-batches show of a query."""

from slackwater.metrics.batches import COLD, Batch, BatchObserver, Coming


def test_cold_batches_are_forgotten_once_a_warm_one_is_known() -> None:
    observer = BatchObserver()
    for number in range(COLD):
        cold = observer.update(Batch(float(number), 8.0, rows=10 * (number + 1)))
        assert cold.batch_fixed_s == 8.0, "all that is known"
    warm = observer.update(Batch(20.0, 0.2, rows=1000))
    assert (warm.batch_fixed_s, warm.batch_per_row_s) == (0.2, 0.0)


def test_batches_without_rows_have_a_cost_of_their_own() -> None:
    observer = BatchObserver()
    observer.update(Batch(0.0, 0.3, rows=1000))
    for duration_s in (2.0, 1.0, 0.1):
        found = observer.update(Batch(1.0, duration_s, rows=0))
    assert (found.batch_empty_s, found.batch_fixed_s) == (0.1, 0.3)


def test_what_a_gate_says_of_rows_that_wait_counts_where_offsets_do_not() -> None:
    observer = BatchObserver()
    assert observer.update(Batch(1.0, 0.1, 5), Coming(backlog_rows=40.0)).backlog_rows == 40
    both = observer.update(Batch(2.0, 0.1, 5, backlog_rows=2.0), Coming(backlog_rows=40.0))
    assert both.backlog_rows == 42
    assert observer.expect(Coming(backlog_rows=0.0)).backlog_rows == 0, "nothing was found"
    assert observer.update(Batch(3.0, 0.1, 5), Coming()).backlog_rows is None


def test_rows_of_a_backlog_do_not_arrive_when_they_are_read() -> None:
    """Else a query that catches up would seem to need ever larger batches."""
    observer = BatchObserver()
    for number in range(10):
        left = Coming(backlog_rows=9000.0 - 1000 * number)
        found = observer.update(Batch(float(number), 0.9, 1000), left)
    assert found.arrival_rate == 0
    after = observer.update(Batch(11.0, 0.9, 300), Coming())
    assert after.arrival_rate is not None
    assert 0 < after.arrival_rate <= 150


def test_a_row_from_the_future_makes_only_its_own_batch_look_fresh() -> None:
    observer = BatchObserver()
    observer.update(Batch(10.0, 0.1, 5, max_event_s=9.0))
    assert observer.update(Batch(11.0, 0.1, 5, max_event_s=9e9)).max_event_s == 9e9
    assert observer.update(Batch(12.0, 0.1, 5, max_event_s=8.5)).max_event_s == 8.5
    assert observer.update(Batch(13.0, 0.1, 5, max_event_s=8.0)).max_event_s == 8.5, "the largest"
