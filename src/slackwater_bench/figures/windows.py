"""Figures of windows under several policies: what ``bench ysb`` and its like have measured."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from slackwater.report.runs import Run, Runs
from slackwater.statistics.intervals import (
    mean_interval,
    quantile_interval,
    ratio_interval,
)
from slackwater_bench.figures.markdown import Row, markdown_table, rounded, seconds, whole

Result = dict[str, Any]


def reduce(result: Result) -> list[Row]:
    """Return a row for each policy and number of queries; the last policy is compared to others."""
    runs = Runs(result)
    rows: list[Row] = []
    for count in runs.counts:
        policies = [policy for policy in runs.policies if runs.of(policy, count)]
        ours = runs.of(policies[-1], count)
        rows += [_row(policy, count, runs.of(policy, count), ours) for policy in policies]
    return rows


def _row(policy: str, queries: int, runs: Sequence[Run], ours: Sequence[Run]) -> Row:
    values = [run.latencies_s for run in runs if len(run.latencies_s)]
    mine = [run.latencies_s for run in ours]
    theirs = [run.latencies_s for run in runs]
    paired = len(mine) == len(theirs) and policy != ours[0].policy if ours else False
    ideals = np.concatenate([run.ideals_s for run in runs]) if runs else np.empty(0)
    ideals = ideals[np.isfinite(ideals)]
    return {
        "policy": policy,
        "queries": queries,
        "rounds": len(values),
        "windows": int(sum(run.expected or 0 for run in runs)),
        "missing": int(sum((run.expected or 0) - (run.emitted or 0) for run in runs)),
        "wrong": int(sum(run.wrong or 0 for run in runs)),
        "mean_s": rounded(mean_interval(values)),
        "p99_s": rounded(quantile_interval(values, 0.99)),
        "ratio_mean": rounded(ratio_interval(mine, theirs)) if paired else None,
        "ratio_p99": rounded(ratio_interval(mine, theirs, 0.99)) if paired else None,
        "ideal_s": round(float(ideals.mean()), 3) if len(ideals) else None,
        "batches": _mean([run.batches for run in runs]),
        "cpu_s": _mean([run.cpu_s for run in runs]),
        "controller_percent": _mean([run.overhead_percent for run in runs]),
    }


def table(rows: Sequence[Row]) -> str:
    """Write rows as a table; a confidence interval of 95 % stands in brackets."""
    ours = rows[-1]["policy"]
    several = len({row["queries"] for row in rows}) > 1
    heads = [
        *(["queries"] if several else []), "", "mean s", "p99 s", f"{ours} ÷ it, mean", "p99",
        "windows; wrong", "batches", "CPU s",
    ]  # fmt: skip
    body = [
        [
            *([str(row["queries"])] if several else []),
            f"`{row['policy']}`",
            seconds(row["mean_s"]),
            seconds(row["p99_s"]),
            seconds(row["ratio_mean"]),
            seconds(row["ratio_p99"]),
            f"{row['windows']}; {row['wrong'] + row['missing']}",
            whole(row["batches"]),
            whole(row["cpu_s"]),
        ]
        for row in rows
    ]
    return markdown_table(heads, body, names=2 if several else 1)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 2) if known else None
