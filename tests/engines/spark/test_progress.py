"""Progress events as Spark writes them become metrics."""

import pytest

from slackwater.engines.spark.progress import QueryObserver, backlog_rows, batch_end_s


def progress(second: int, rows: int, *, arrived: int | None = None, read: int = 0, ms: int = 200):
    source = {"endOffset": {"n": read}, "latestOffset": {"n": arrived}} if arrived else {}
    return {
        "timestamp": f"2026-01-01T00:00:{second:02d}.000Z",
        "numInputRows": rows,
        "durationMs": {"addBatch": ms - 50, "commitOffsets": 20, "triggerExecution": ms},
        "eventTime": {
            "max": f"2026-01-01T00:00:{second - 1:02d}.750Z",
            "watermark": f"2026-01-01T00:00:{second - 1:02d}.000Z",
        },
        "stateOperators": [
            {"numRowsTotal": 7, "memoryUsedBytes": 1000, "numRowsDroppedByWatermark": 2},
            {"numRowsTotal": 3, "memoryUsedBytes": 500, "numRowsDroppedByWatermark": 1},
        ],
        "sources": [source],
        "sink": {"numOutputRows": 10},
        "inputRowsPerSecond": 50.0,
    }


def test_one_batch() -> None:
    metrics = QueryObserver().update(progress(10, 100, arrived=150, read=100))
    assert (metrics.batches, metrics.rows, metrics.backlog_rows) == (1, 100, 50)
    assert metrics.frontier_lag_s == pytest.approx(0.25)
    assert metrics.selectivity == pytest.approx(0.1)
    assert (metrics.state_rows, metrics.state_bytes) == (10, 1500)
    assert metrics.service_rate == pytest.approx(500.0)


def test_arrivals_are_counted_where_the_source_counts_them() -> None:
    observer = QueryObserver()
    observer.update(progress(10, 100, arrived=1000, read=100))
    metrics = observer.update(progress(12, 100, arrived=3000, read=200))
    assert metrics.arrival_rate == pytest.approx(1000.0)  # not the 50 rows/s that were read


def test_where_no_source_counts_what_was_read_must_do() -> None:
    observer = QueryObserver()
    observer.update(progress(10, 100))
    metrics = observer.update(progress(12, 600))
    assert metrics.arrival_rate == pytest.approx(300.0)
    assert metrics.backlog_rows is None


def test_fixed_and_per_row_cost_are_told_apart() -> None:
    observer = QueryObserver()
    for second, rows in enumerate((100, 2000, 500, 4000), start=10):
        metrics = observer.update(progress(second, rows, ms=100 + rows // 10))
    assert metrics.batch_fixed_s == pytest.approx(0.1)
    assert metrics.batch_per_row_s == pytest.approx(1e-4)


def test_triggers_that_ran_no_batch_are_left_out() -> None:
    idle = progress(10, 0)
    del idle["durationMs"]["addBatch"]
    assert QueryObserver().update(idle).batches == 0


def test_rows_dropped_behind_the_watermark_add_up() -> None:
    observer = QueryObserver()
    observer.update(progress(10, 100))
    assert observer.update(progress(12, 100)).rows_dropped_by_watermark == 6
    stateless = progress(14, 100) | {"stateOperators": []}
    assert observer.update(stateless).rows_dropped_by_watermark == 6
    assert QueryObserver().update(stateless).rows_dropped_by_watermark is None, "nobody counts"


def test_a_batch_without_data_keeps_the_event_time() -> None:
    observer = QueryObserver()
    observer.update(progress(10, 100))
    empty = progress(12, 0) | {"eventTime": {"watermark": "2026-01-01T00:00:09.000Z"}}
    metrics = observer.update(empty)
    assert metrics.batches == 2
    assert metrics.max_event_s == observer.metrics.max_event_s is not None


def test_results_are_complete_before_the_commit_log_is_written() -> None:
    end_s = batch_end_s(progress(10, 100, ms=200))
    assert end_s % 60 == pytest.approx(10.18)


def test_offsets_that_count_nothing_give_no_backlog() -> None:
    for offsets in (
        {"endOffset": 3, "latestOffset": 9},
        {"endOffset": "x{", "latestOffset": None},
        {"endOffset": {"n": "many"}, "latestOffset": {"n": 10**400}},
        {"endOffset": {"ads": {"0": []}}, "latestOffset": "[" * 100_000},
    ):
        assert backlog_rows(progress(10, 100) | {"sources": [offsets]}) is None
