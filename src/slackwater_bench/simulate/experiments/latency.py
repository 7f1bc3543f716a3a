"""Latency, slowdown and throughput against the number of queries."""

import numpy as np

from slackwater.report.result import Findings, Panel
from slackwater_bench.comparison import Show
from slackwater_bench.simulate.experiment import (
    Experiment,
    Row,
    base_trial,
    latency_series,
    panel,
    row_series,
    rows,
    run_all,
    streams,
    trials,
)
from slackwater_bench.simulate.settings import Settings
from slackwater_bench.simulate.trial import Outcome, SimulatedTrial

LEVELS = np.linspace(0.0, 1.0, 101)


class Latency(Experiment):
    """Klink's figures 6 and 7: how late results are as the fleet grows."""

    name = "latency"
    title = "Latency against number of queries"
    about = (
        "Mean latency, its distribution at the largest number of queries, slowdown and "
        "throughput. Workloads ysb, linear-road, nyc-taxi; delays uniform and Zipf."
    )
    columns = (
        "workload delays policy queries mean_s p50_s "
        "p99_s slowdown events_per_s memory_bytes collecting windows"
    )
    usual = Settings(queries=(1, 20, 40, 60, 70, 80))

    def _run(self, settings: Settings, show: Show) -> Findings:
        done = run_all(
            trials(
                base_trial(settings),
                settings.repeat,
                queries=settings.queries,
                policy=settings.policies,
                **streams(settings),
            ),
            show,
        )
        found: list[Row] = []
        panels = []
        for workload, delays in dict.fromkeys((t.workload, t.delays) for t, _ in done):
            mine = [(t, o) for t, o in done if (t.workload, t.delays) == (workload, delays)]
            figures = rows(mine)
            panels += _panels(f"{workload}, {delays}", mine, figures)
            found += figures
        return {"rows": found, "panels": panels}


def _panels(
    setting: str, done: list[tuple[SimulatedTrial, Outcome]], found: list[Row]
) -> list[Panel]:
    largest = max(trial.queries for trial, _ in done)
    curves: dict[str, dict[float, float]] = {}
    for policy in dict.fromkeys(trial.policy for trial, _ in done):
        seen = np.concatenate(
            [o.latencies_s for t, o in done if (t.policy, t.queries) == (policy, largest)]
        )
        if len(seen):
            at = np.quantile(seen, LEVELS).tolist()
            curves[policy] = dict(zip(at, (100 * LEVELS).tolist(), strict=True))
    panels = [
        panel(
            f"Mean latency, {setting}",
            "Against the number of queries; lower and flatter is better.",
            "queries",
            "mean latency, s",
            latency_series(done, lambda trial: trial.policy, lambda trial: trial.queries),
        ),
        panel(
            f"Distribution of latency, {setting}",
            f"At {largest} queries; further left and up is better.",
            "latency, s",
            "windows done, %",
            curves,
        ),
    ]
    for key, title, label in (
        ("slowdown", "Slowdown", "latency ÷ least possible"),
        ("events_per_s", "Throughput", "events through operators, per second"),
    ):
        series = row_series(found, key, lambda row: row["policy"], lambda row: row["queries"])
        panels.append(
            panel(f"{title}, {setting}", "Against the number of queries.", "queries", label, series)
        )
    return panels
