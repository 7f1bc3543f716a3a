"""Fits the model of micro-batches to measurements of real Spark, and checks its predictions."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from slackwater.bench.trial import Trial, workloads
from slackwater.core.errors import UsageError
from slackwater.engines.simulator.query import BatchCosts, SimulatedQuery
from slackwater.simulate.prediction import Machine, Prediction, predict

START_S = 1_700_000_000.0
ROUNDS = 4  # of fitting the time that batches wait
WARMUP_S = 12.0  # the model has no cold start: less than a real run needs

Run = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was learnt of a machine and a workload; ``plan`` reads it."""

    costs: BatchCosts
    background: float  # cores that are busy whatever runs
    cores: int

    @property
    def machine(self) -> Machine:
        # Slots follow the cores that Spark is told of, not those that are left.
        free = max(0.1, self.cores - self.background)
        return Machine(free, slots=Machine(self.cores).admitted)


def read_runs(files: Sequence[Path], profile: str) -> list[Run]:
    """The trials of ``bench --json`` files that ended well, with a session of this profile."""
    found = []
    for file in files:
        try:
            result = json.loads(file.read_text())
            runs = [run for run in result["runs"] if "error" not in run]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{file} is not a result of slackwater bench: {error}") from error
        found += [run for run in runs if run["trial"]["profile"] == profile]
    return found


def calibrate(
    fit: Sequence[Run], held_out: Sequence[Run], cores: int, show: Callable[[str], None]
) -> dict[str, Any]:
    """Fit on the first runs, predict the others.

    Parameters
    ----------
    cores
        Of the machine on which they ran.
    """
    if not fit:
        raise UsageError("no run to fit: the files hold none with our session profile")
    show(f"fitting {len(fit)} runs")
    costs, background = _fit_work(fit)
    found = Calibration(costs, background, cores)
    for number in range(ROUNDS):
        show(f"fitting waiting times, round {number + 1} of {ROUNDS}")
        late_s = np.mean([_lateness_s(run, predict_run(run, found)) for run in fit])
        waiting_s = max(0.0, found.costs.waiting_s + float(late_s))
        found = replace(found, costs=replace(found.costs, waiting_s=waiting_s))
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


def load(file: Path) -> Calibration:
    """What ``calibrate --json`` wrote."""
    try:
        raw = json.loads(file.read_text())["calibration"]
        return Calibration(BatchCosts(**raw["costs"]), raw["background"], raw["cores"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is not a result of slackwater simulate calibrate") from error


def table(result: dict[str, Any]) -> Table:
    """The result for people."""
    costs = result["calibration"]["costs"]
    title = (
        f"a batch: {costs['fixed_s']:.3f} s + {1e6 * costs['per_row_s']:.1f} µs a row, "
        f"{costs['empty_s']:.3f} s without rows, {costs['waiting_s']:.3f} s of waiting"
    )
    grid = Table(title=title, title_justify="left")
    for column in ("use", "policy", "workload", "queries"):
        grid.add_column(column)
    for column in ("mean s", "predicted", "error", "p99 s", "predicted", "error"):
        grid.add_column(column, justify="right")
    for row in result["rows"]:
        figures = []
        for key in ("mean", "p99"):
            figures += [f"{row[f'{key}_s']:.2f}", f"{row[f'{key}_predicted_s']:.2f}"]
            figures.append(f"{row[f'{key}_error']:+.0%}")
        grid.add_row(row["use"], row["policy"], row["workload"], str(row["queries"]), *figures)
    return grid


def predict_run(run: Run, calibration: Calibration) -> Prediction:
    """The same trial in the model: the same traffic, phases, windows and policy."""
    known = {field.name for field in fields(Trial)}
    trial = Trial(**{key: value for key, value in run["trial"].items() if key in known})
    machine = calibration.machine
    if trial.slots is not None:
        machine = replace(machine, slots=trial.slots)
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
        for name, workload in workloads(trial, START_S).items()
    ]
    return predict(
        queries,
        trial.policy,
        machine,
        warmup_s=WARMUP_S,
        seconds=trial.seconds,
        parameters=trial.parameters,
    )


def _fit_work(runs: Sequence[Run]) -> tuple[BatchCosts, float]:
    """CPU seconds = with rows × fixed + without × empty + rows × per row + time × background."""
    table = np.array(
        [
            (
                run["batches"] - run["batches_without_rows"],
                run["batches_without_rows"],
                run["events"],
                run["seconds"],
            )
            for run in runs
        ],
        dtype=np.float64,
    )
    spent = np.array([run["cpu_s"] for run in runs])
    fixed_s, empty_s, per_row_s, background = least_squares(table, spent)
    shares = [run["driver_share"] for run in runs if run.get("driver_share") is not None]
    costs = BatchCosts(
        fixed_s=fixed_s,
        empty_s=empty_s,
        per_row_s=per_row_s,
        waiting_s=0.0,
        driver=float(np.mean(shares)) if shares else 0.0,
    )
    return costs, background


def least_squares(table: NDArray[np.float64], wanted: NDArray[np.float64]) -> list[float]:
    """The best weights of the columns of which none is negative; relative errors count.

    >>> least_squares(np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]]), np.array([2.0, 4.0, 6.0]))
    [2.0, 0.0]
    """
    table, wanted = table / wanted[:, None], np.ones(len(wanted))
    scale = np.maximum(table.max(axis=0), 1e-12)
    best, least = [0.0] * table.shape[1], float("inf")
    for size in range(1, min(table.shape) + 1):
        for chosen in combinations(range(table.shape[1]), size):
            columns = list(chosen)
            found, *_ = np.linalg.lstsq(table[:, columns] / scale[columns], wanted, rcond=None)
            error = float(((table[:, columns] / scale[columns] @ found - wanted) ** 2).sum())
            if (found >= 0).all() and error < least * (1 - 1e-9) - 1e-15:
                least, best = error, [0.0] * table.shape[1]
                for column, weight in zip(columns, found / scale[columns], strict=True):
                    best[column] = round(float(weight), 12)
    return best


def _lateness_s(run: Run, predicted: Prediction) -> float:
    """How much longer real batches took, on average over both kinds."""
    empty = run["batches_without_rows"]
    with_rows, without = run["batch_s"]["with_rows"], run["batch_s"]["without_rows"]
    late_s = (run["batches"] - empty) * (with_rows["mean"] - predicted.with_rows_s)
    if empty and without["mean"] is not None:
        late_s += empty * (without["mean"] - predicted.without_rows_s)
    return float(late_s / run["batches"])


def _compared(run: Run, predicted: Prediction) -> Run:
    measured = run["latency_s"]
    row: Run = {
        "policy": run["policy"],
        "workload": run["trial"]["workload"],
        "queries": run["queries"],
        "repeat": run["repeat"],
    }
    for key, value in (("mean", predicted.mean_s), ("p99", predicted.p99_s)):
        row |= {
            f"{key}_s": measured[key],
            f"{key}_predicted_s": round(value, 4),
            f"{key}_error": round(value / measured[key] - 1, 4),
        }
    return row


def _mean_error(rows: Sequence[Run], use: str, key: str) -> float | None:
    found = [abs(row[key]) for row in rows if row["use"] == use]
    return round(float(np.mean(found)), 4) if found else None
