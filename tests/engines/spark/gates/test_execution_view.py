"""What a held query's execution shows of its last batch and its watermarks."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.clock import execution_of
from slackwater.engines.spark.gates.execution import ExecutionView
from slackwater.engines.spark.gates.method_handles import Handles
from tests.waiting import eventually


def shown(batch: int, timestamp: str, rows: int, watermark_ms: int = 0) -> str:
    progress = {"batchId": batch, "timestamp": timestamp, "numInputRows": rows}
    return f"[{watermark_ms}, HashMap(a-1 -> Some(700)), {json.dumps(progress)}]"


def rows(view: ExecutionView, line: str) -> Any:
    found = view.hear(line)
    return None if found is None else found["numInputRows"]


def test_the_batch_after_a_trigger_that_found_nothing_is_told() -> None:
    """Spark tells of such a trigger under the number of the batch that has yet to come."""
    view = ExecutionView(None, None)  # type: ignore[arg-type]
    assert rows(view, "") is None  # before its first trigger
    assert rows(view, "[0, Map(), null]") is None
    assert rows(view, shown(0, "2026-01-01T00:00:00.000Z", 0)) == 0  # an empty start
    last = shown(0, "2026-01-01T00:00:09.000Z", 700)
    assert rows(view, last) == 700
    assert rows(view, last) is None  # once
    assert rows(view, shown(1, "2026-01-01T00:00:30.000Z", 0)) == 0  # an idle spell
    assert rows(view, shown(1, "2026-01-01T00:00:31.000Z", 900)) == 900


@pytest.mark.spark
def test_the_cpu_time_of_a_query_s_own_thread_is_seen(spark: SparkSession) -> None:
    rows = spark.readStream.format("rate").load()
    query = rows.writeStream.format("memory").queryName("seen").start()
    try:
        view = ExecutionView(Handles(spark), execution_of(query._jsq))
        first_s = view.thread_cpu_s()
        assert first_s is not None
        eventually(lambda: (view.thread_cpu_s() or 0.0) > first_s)
    finally:
        query.stop()


def test_a_watermark_that_moved_without_a_batch_is_seen() -> None:
    view = ExecutionView(None, None)  # type: ignore[arg-type]
    assert rows(view, shown(1, "2026-01-01T00:00:00.000Z", 5, watermark_ms=100)) == 5
    assert rows(view, shown(1, "2026-01-01T00:00:00.000Z", 5, watermark_ms=200)) is None
    assert (view.watermark_ms, view.marks_ms, view.parts_ms) == (200, {"a-1": 700}, (700,))
