"""The model of micro-batches can be fitted, and what it is fitted to comes out of it."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slackwater.bench.statistics import summary
from slackwater.bench.trial import Trial
from slackwater.core.errors import UsageError
from slackwater.engines.simulator.query import BatchCosts
from slackwater.simulate.calibrate import (
    Calibration,
    calibrate,
    least_squares,
    load,
    predict_run,
    read_runs,
    table,
)

TRUTH = Calibration(
    BatchCosts(fixed_s=0.12, empty_s=0.07, per_row_s=2e-5, waiting_s=0.04), 0.1, cores=2
)


def run_of(policy: str, queries: int, **changes: Any) -> dict[str, Any]:
    """What a real run with these costs would have written."""
    trial = Trial(policy=policy, queries=queries, seconds=20.0, **changes)
    raw: dict[str, Any] = {
        "policy": policy,
        "queries": queries,
        "repeat": 0,
        "trial": asdict(trial),
        "seconds": 20.0,
    }
    seen = predict_run(raw, TRUTH)
    costs, with_rows = TRUTH.costs, int(seen.batches * 0.6)
    events = 1000 * queries * 20
    cpu_s = with_rows * costs.fixed_s + (seen.batches - with_rows) * costs.empty_s
    cpu_s += events * costs.per_row_s + TRUTH.background * 20
    return raw | {
        "batches": seen.batches,
        "batches_without_rows": seen.batches - with_rows,
        "events": events,
        "cpu_s": cpu_s,
        "batch_s": {
            "with_rows": {"mean": seen.with_rows_s},
            "without_rows": {"mean": seen.without_rows_s},
        },
        "latency_s": summary(seen.latencies_s.tolist()),
    }


def test_what_is_fitted_predicts_runs_it_has_not_seen(tmp_path: Path) -> None:
    fit = [
        run_of("klink", 4),
        run_of("fcfs", 3, rate="500"),
        run_of("spark", 2, trigger_s=0.5),
        run_of("klink", 2, rate="3000"),
        run_of("spark", 1),
    ]
    held_out = [run_of("klink", 6), run_of("spark", 4, trigger_s=1.0)]
    result = calibrate(fit, held_out, cores=2, show=lambda line: None)
    assert result["held_out_error"]["mean_error"] < 0.1
    assert table(result).row_count == len(fit) + len(held_out)
    file = tmp_path / "calibration.json"
    file.write_text(json.dumps(result))
    found = load(file)
    assert found.costs.fixed_s + found.costs.waiting_s == pytest.approx(0.16, rel=0.35)


def test_slower_batches_make_later_results() -> None:
    run = run_of("klink", 4)
    slow = replace(TRUTH, costs=replace(TRUTH.costs, fixed_s=0.3))
    assert predict_run(run, slow).mean_s > 1.2 * predict_run(run, TRUTH).mean_s


def test_weights_are_never_negative() -> None:
    rng = np.random.default_rng(3)
    columns = rng.uniform(1, 5, (8, 3))
    wanted = columns @ [1.0, 0.0, 0.5] + rng.normal(0, 0.05, 8)
    found = least_squares(columns, wanted)
    assert min(found) >= 0
    assert found[0] == pytest.approx(1.0, abs=0.1)


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    with pytest.raises(UsageError, match="not a result of slackwater bench"):
        read_runs([file], "tuned")
    with pytest.raises(UsageError, match="not a result of slackwater simulate calibrate"):
        load(file)
    with pytest.raises(UsageError, match="no run to fit"):
        calibrate([], [], 2, lambda line: None)
