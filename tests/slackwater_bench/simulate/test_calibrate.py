"""The model of micro-batches can be fitted, and what it is fitted to comes out of it."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import UsageError
from slackwater.engines.simulator.prediction import Calibration, load_calibration
from slackwater.engines.simulator.query import BatchCosts
from slackwater.statistics.intervals import summary
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.simulate.calibrate import (
    calibrate,
    predict_run,
    read_runs,
    table,
)

TRUTH = Calibration(
    BatchCosts(fixed_s=0.12, empty_s=0.07, per_row_s=2e-5, waiting_s=0.06, beside=0.3, spread=0.1),
    cores=2,
)


def run_of(policy: str, queries: int, **changes: Any) -> dict[str, Any]:
    """What a real run with these costs would have written."""
    trial = PolicyTrial(policy=policy, queries=queries, seconds=20.0, **changes)
    raw: dict[str, Any] = {
        "policy": policy,
        "queries": queries,
        "repeat": 0,
        "trial": asdict(trial),
        "seconds": 20.0,
    }
    seen = predict_run(raw, TRUTH)
    return raw | {
        "batches": seen.batches,
        "cpu_s": seen.busy_s,
        "batch_s": {
            "with_rows": summary(seen.with_rows_s.tolist()),
            "without_rows": summary(seen.without_rows_s.tolist()),
        },
        "latency_s": summary(seen.latencies_s.tolist()),
    }


def test_what_is_fitted_predicts_runs_it_has_not_seen(tmp_path: Path) -> None:
    fit = [run_of("klink", 4), run_of("spark", 4, trigger_s=0.5)]
    held_out = [run_of("fcfs", 3, rate="2000"), run_of("klink", 6)]
    result = calibrate(fit, held_out, 2, lambda line: None, evaluations=30)
    assert result["held_out_error"]["mean_error"] < 0.15
    assert table(result).row_count == 4
    file = tmp_path / "calibration.json"
    file.write_text(json.dumps(result))
    assert load_calibration(file).costs.fixed_s > 0


def test_slower_batches_make_later_results() -> None:
    run = run_of("klink", 4)
    slow = replace(TRUTH, costs=replace(TRUTH.costs, fixed_s=0.3))
    assert predict_run(run, slow).mean_s > 1.2 * predict_run(run, TRUTH).mean_s


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    with pytest.raises(UsageError, match="not a result of slackwater bench"):
        read_runs([file], "tuned")
    with pytest.raises(UsageError, match="not a result of slackwater simulate calibrate"):
        load_calibration(file)
    with pytest.raises(UsageError, match="no run to fit"):
        calibrate([], [], 2, lambda line: None)
