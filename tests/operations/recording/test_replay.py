"""A recorded fleet is replayed: by its own policy nearly as it was, by others as they are."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slackwater.core import QueryState, UsageError
from slackwater.engines.simulator.query import BatchCosts
from slackwater.operations import recording
from slackwater.operations.recording.recorded import RecordedQuery
from slackwater.operations.recording.table import replay_table
from slackwater.report import write_report
from tests.simulated import START_S, query, simulate

SECONDS = 60.0
COSTS = BatchCosts(fixed_s=0.15, empty_s=0.09, per_row_s=2e-5)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight queries under FCFS."""
    return record(tmp_path_factory.mktemp("recorded"), "fcfs", 8)


def record(folder: Path, policy: str, queries: int, **options: Any) -> Path:
    """Write down some simulated queries as `slackwater record` would have."""
    fleet = [query(number, costs=COSTS, **options) for number in range(queries)]
    engine, _ = simulate(policy, fleet, SECONDS, slots=3)
    status = {
        "kind": "status",
        "app_name": "ads",
        "policy": policy,
        "slots": 3,
        "cores": 1,
        "queries": [asdict(QueryState(each.spec)) for each in fleet],
    }
    lines = [status | {"at_s": START_S}, status | {"at_s": START_S + SECONDS}]
    for one in engine._executions.values():
        for rows, seconds in one.durations:
            times = {"start_s": START_S, "end_s": START_S + seconds}
            lines.append({"kind": "batch", "query": one.query.name, "rows": rows, **times})
    for result in engine.results:
        found = {"query": result.query, "end_s": result.end_s, "latency_s": result.latency_s}
        lines.append({"kind": "result", **found})
    path = folder / "ads.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def means(result: dict[str, object]) -> dict[str, float]:
    runs = result["runs"]
    assert isinstance(runs, list)
    return {run["policy"]: float(np.mean(run["latencies_s"])) for run in runs}


def test_what_klink_would_have_done(recorded: Path, tmp_path: Path) -> None:
    result = recording.replay(recording.load(recorded), ["klink"], lambda line: None)
    found = means(result)
    assert list(found) == ["fcfs, as recorded", "fcfs, replayed", "klink, replayed"]
    assert found["fcfs, replayed"] == pytest.approx(found["fcfs, as recorded"], rel=0.25)
    assert found["klink, replayed"] < 0.8 * found["fcfs, replayed"]
    assert replay_table(result).row_count == 3
    page = write_report(result, tmp_path).read_text()
    assert "recording of ads" in page
    assert "klink, replayed" in page


def test_a_window_that_took_one_batch_is_replayed_so(tmp_path: Path) -> None:
    recorded = recording.load(record(tmp_path, "klink", 4, one_batch=True))
    assert all(query.spec.one_batch for query in recorded.queries.values())
    as_recorded, again = recording.replay(recorded, [], lambda line: None)["runs"]
    assert again["batches"] == pytest.approx(as_recorded["batches"], rel=0.2)
    for each in recorded.queries.values():
        each.spec = replace(each.spec, one_batch=False)
    two = recording.replay(recorded, [], lambda line: None)["runs"][1]
    assert two["batches"] > 1.5 * again["batches"]


def test_costs_are_read_from_batches() -> None:
    spec = query(0).spec
    batches = [(rows, 0.2 + rows * 1e-4) for rows in (100, 500, 900)] + [(0, 0.1)]
    costs = RecordedQuery(spec, 1500, batches).costs
    assert costs.per_row_s == pytest.approx(1e-4)
    assert costs.fixed_s + costs.waiting_s == pytest.approx(0.2)
    assert costs.empty_s == pytest.approx(0.08)


@pytest.mark.parametrize("text", ["", "not JSON\n", '{"kind": "status"}\n', "[]\n"])
def test_what_is_no_recording_is_told_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError, match="not a recording"):
        recording.load(path)


def test_a_short_recording_is_refused(recorded: Path, tmp_path: Path) -> None:
    first = recorded.read_text().splitlines()[0]
    path = tmp_path / "short.jsonl"
    path.write_text(f"{first}\n{first}\n")
    with pytest.raises(UsageError, match="too little"):
        recording.replay(recording.load(path), [], lambda line: None)
