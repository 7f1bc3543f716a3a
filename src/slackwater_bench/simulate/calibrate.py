"""Fits the model of micro-batches to measurements of real Spark, and checks its predictions."""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy.optimize import minimize

from slackwater.core.errors import UsageError
from slackwater.engines.simulator.prediction import START_S, Calibration, Prediction, predict
from slackwater.engines.simulator.query import BatchCosts, SimulatedQuery
from slackwater_bench.klink.results import PolicyRun
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.tables import figures_table

EVALUATIONS = 160
FITTED_S = 60.0  # of a run are simulated for a fit
WARMUP_S = 12.0  # the model has no cold start: less than a real run needs
FITTED = ("fixed_s", "empty_s", "per_row_s", "waiting_s", "beside", "spread")
FIRST_GUESS = (0.08, 0.05, 2e-5, 0.04, 0.3, 0.2, 0.1)  # of these and of the background

Row = dict[str, Any]  # of a result: one run, measured and predicted


def read_runs(files: Sequence[Path], profile: str) -> list[PolicyRun]:
    """Read trials of ``bench --json`` files that ended well, with a session of this profile."""
    found = []
    for file in files:
        try:
            result = json.loads(file.read_text())
            runs = [run for run in result["runs"] if "error" not in run]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{file} is not a result of slackwater bench: {error}") from error
        found += [run for run in runs if _in_the_model(run, profile)]
    return found


def _in_the_model(run: PolicyRun, profile: str) -> bool:
    """Tell whether the model has it: FAIR pools it has not, nor a backlog at the start."""
    trial = run["trial"]
    usual = not trial.get("fair") and not trial.get("backlog_s") and run.get("batches")
    seen = run["latency_s"]["mean"] is not None
    return bool(usual and seen and trial["profile"] == profile)


def calibrate(
    fit: Sequence[PolicyRun],
    held_out: Sequence[PolicyRun],
    cores: int,
    show: Callable[[str], None],
    evaluations: int = EVALUATIONS,
) -> dict[str, Any]:
    """Fit on the first runs, predict the others.

    Parameters
    ----------
    cores
        Of the machine on which they ran.
    evaluations
        Of the model, at most.
    """
    if not fit:
        raise UsageError("no run to fit: the files hold none with our session profile")
    found = _fit(fit, cores, show, evaluations)
    rows = []
    for number, (kind, run) in enumerate(
        [("fitted", run) for run in fit] + [("held out", run) for run in held_out], 1
    ):
        show(f"predicting {number} of {len(fit) + len(held_out)}: {run['policy']}")
        rows.append({"use": kind} | _compared(run, predict_run(run, found)))
    return {
        "calibration": asdict(found),
        "rows": rows,
        "held_out_error": {
            key: _mean_error(rows, "held out", key) for key in ("mean_error", "p99_error")
        },
    }


def table(result: dict[str, Any]) -> Table:
    """Return the result for people."""
    costs = result["calibration"]["costs"]
    title = (
        f"a batch: {costs['fixed_s']:.3f} s + {1e6 * costs['per_row_s']:.1f} µs a row, "
        f"{costs['empty_s']:.3f} s without rows, {costs['waiting_s']:.3f} s of waiting, "
        f"{costs['beside']:.0%} more work beside it"
    )
    figures = "mean s, predicted, error, p99 s, predicted, error"
    grid = figures_table(title, f"use, policy, workload, queries, {figures}", names=4)
    for row in result["rows"]:
        cells = []
        for key in ("mean", "p99"):
            cells += [f"{row[f'{key}_s']:.2f}", f"{row[f'{key}_predicted_s']:.2f}"]
            cells.append(f"{row[f'{key}_error']:+.0%}")
        grid.add_row(row["use"], row["policy"], row["workload"], str(row["queries"]), *cells)
    return grid


def predict_run(
    run: PolicyRun, calibration: Calibration, seconds: float | None = None
) -> Prediction:
    """Run the same trial in the model: the same traffic, phases, windows and policy."""
    known = {field.name for field in fields(PolicyTrial)}
    trial = PolicyTrial(**{key: value for key, value in run["trial"].items() if key in known})
    if seconds is not None:
        trial = replace(trial, seconds=min(trial.seconds, seconds))
    queries = [
        SimulatedQuery(
            name=name,
            traffic=workload.traffic,
            costs=calibration.costs,
            window_s=workload.window_s,
            slide_s=workload.slide_s,
            phase_s=workload.phase_s,
            trigger_s=trial.trigger_s,
        )
        for name, workload in trial.workloads(START_S).items()
    ]
    return predict(
        queries,
        trial.policy,
        calibration.machine(slots=trial.slots),
        warmup_s=WARMUP_S,
        seconds=trial.seconds,
        parameters=trial.parameters,
    )


def _fit(
    runs: Sequence[PolicyRun], cores: int, show: Callable[[str], None], evaluations: int
) -> Calibration:
    """Find costs with which the model shows what was seen: durations, spread, CPU, latency."""
    shares = [share for run in runs if (share := run.get("driver_share")) is not None]
    seen = np.concatenate([_seen(run) for run in runs])
    tries = itertools.count(1)

    def known(point: NDArray[np.float64]) -> Calibration:
        *values, background = map(float, np.exp(point))
        driver = float(np.mean(shares)) if shares else 0.0
        costs = BatchCosts(**dict(zip(FITTED, values, strict=True)), driver=driver)
        return Calibration(costs, cores, background)

    def error(point: NDArray[np.float64]) -> float:
        tried = known(point)
        shown = [_shown(run, predict_run(run, tried, FITTED_S), tried.background) for run in runs]
        gap = np.nan_to_num(np.concatenate(shown) - seen, nan=0.0, posinf=9.0, neginf=-9.0)
        off = float((np.clip(gap, -3.0, 3.0) ** 2).mean())
        show(f"fitting {len(runs)} runs, try {next(tries)} of at most {evaluations}: {off:.4f}")
        return off

    start = np.log(FIRST_GUESS)
    # Every corner of the first figure differs from the guess by a factor of two in one cost.
    corners = np.vstack([start, start + np.log(2.0) * np.eye(len(start))])
    options = {"maxfev": evaluations, "initial_simplex": corners, "xatol": 0.01, "fatol": 1e-5}
    return known(minimize(error, start, method="Nelder-Mead", options=options).x)


def _seen(run: PolicyRun) -> NDArray[np.float64]:
    with_rows, without = run["batch_s"]["with_rows"], run["batch_s"]["without_rows"]
    middle_s, late_s = with_rows["p50"], with_rows["p90"]
    return _logarithms(
        with_rows["mean"],
        without["mean"],
        late_s / middle_s if middle_s and late_s is not None else None,
        run["cpu_s"] / run["batches"],
        run["latency_s"]["mean"],
    )


def _shown(run: PolicyRun, predicted: Prediction, background: float) -> NDArray[np.float64]:
    rows, empty = predicted.with_rows_s, predicted.without_rows_s
    behind_s = background * run["seconds"] / run["batches"]  # of a batch
    return _logarithms(
        rows.mean() if len(rows) else None,
        empty.mean() if len(empty) else None,
        np.quantile(rows, 0.9) / np.quantile(rows, 0.5) if len(rows) else None,
        predicted.busy_s / max(1, predicted.batches) + behind_s,
        predicted.mean_s,
    )


def _logarithms(*values: float | None) -> NDArray[np.float64]:
    """Return logarithms; what was not seen is no number, and does not count."""
    return np.array([np.log(value) if value else np.nan for value in values])


def _compared(run: PolicyRun, predicted: Prediction) -> Row:
    row: Row = {
        "policy": run["policy"],
        "workload": run["trial"]["workload"],
        "queries": run["queries"],
        "repeat": run["repeat"],
    }
    for key, value in (("mean", predicted.mean_s), ("p99", predicted.p99_s)):
        measured_s = run["latency_s"][key]
        assert measured_s is not None  # else the run is not in the model
        row |= {
            f"{key}_s": measured_s,
            f"{key}_predicted_s": round(value, 4),
            f"{key}_error": round(value / measured_s - 1, 4),
        }
    return row


def _mean_error(rows: Sequence[Row], use: str, key: str) -> float | None:
    found = [abs(row[key]) for row in rows if row["use"] == use]
    return round(float(np.mean(found)), 4) if found else None
