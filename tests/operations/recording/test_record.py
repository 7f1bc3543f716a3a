"""A running fleet is recorded, also across a restart of its controller."""

import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest

from slackwater.core import UsageError
from slackwater.engines.spark.control.process import ControllerProcess
from slackwater.operations import recording
from tests.operations.dashboard.pretence import PretendFleet
from tests.waiting import eventually


def kinds(path: Path) -> Counter[str]:
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter(json.loads(line)["kind"] for line in lines if line.endswith("}"))


def test_decisions_batches_and_results_are_kept(
    fleet: PretendFleet, controller: ControllerProcess, path: Path, tmp_path: Path
) -> None:
    file, stop = tmp_path / "run.jsonl", threading.Event()
    recorder = threading.Thread(
        target=recording.record, args=(path, file, stop.is_set, lambda line: None)
    )
    recorder.start()
    eventually(lambda: min(kinds(file)[k] for k in ("decision", "batch", "result")) > 5)
    os.kill(controller.pid, signal.SIGKILL)
    before = kinds(file)["result"]
    eventually(lambda: kinds(file)["result"] > before + 5)
    stop.set()
    recorder.join()
    recorded = recording.load(file)
    assert recorded.policy == "klink"
    assert sorted(recorded.queries) == ["query-0", "query-1", "query-2"]
    assert all(query.latencies_s and query.rows for query in recorded.queries.values())
    assert len(recorded.decisions) == kinds(file)["decision"]


def test_without_a_fleet_there_is_nothing_to_record(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no fleet answers"):
        recording.record(tmp_path / "no.sock", tmp_path / "r", lambda: False, lambda line: None)
