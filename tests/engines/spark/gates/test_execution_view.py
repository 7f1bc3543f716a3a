"""What a held query's execution tells of its last batch, on an execution that is scripted."""

import json
from typing import Any, cast

from slackwater.engines.spark.gates.execution import ExecutionView
from slackwater.engines.spark.gates.method_handles import Handles


class Progress:
    def __init__(self, batch: int, timestamp: str, rows: int) -> None:
        self._found = {"batchId": batch, "timestamp": timestamp, "numInputRows": rows}

    def timestamp(self) -> str:
        return str(self._found["timestamp"])

    def json(self) -> str:
        return json.dumps(self._found)


class Execution:
    def __init__(self) -> None:
        self.last: Progress | None = None

    def lastProgress(self) -> Progress | None:
        return self.last


def rows(view: ExecutionView) -> Any:
    found = view.progress()
    return None if found is None else found["numInputRows"]


def test_the_batch_after_a_trigger_that_found_nothing_is_told() -> None:
    """Spark tells of such a trigger under the number of the batch that has yet to come."""
    execution = Execution()
    view = ExecutionView(cast(Handles, None), execution)
    assert rows(view) is None
    execution.last = Progress(0, "2026-01-01T00:00:00.000Z", 0)  # an empty start
    assert rows(view) == 0
    execution.last = Progress(0, "2026-01-01T00:00:09.000Z", 700)
    assert rows(view) == 700
    assert rows(view) is None  # once
    execution.last = Progress(1, "2026-01-01T00:00:30.000Z", 0)  # an idle spell
    assert rows(view) == 0
    execution.last = Progress(1, "2026-01-01T00:00:31.000Z", 900)
    assert rows(view) == 900
