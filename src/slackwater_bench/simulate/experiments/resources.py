"""Memory and CPU over time."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from slackwater.engines.simulator.operators import Usage
from slackwater.report.result import Findings
from slackwater_bench.comparison import Show
from slackwater_bench.simulate.experiment import (
    Experiment,
    base_trial,
    panel,
    rows,
    run_all,
    streams,
    trials,
)
from slackwater_bench.simulate.settings import Settings

POINTS = 200  # of a line


class Resources(Experiment):
    """Klink's figure 8: what memory and cores do while the fleet runs."""

    name = "resources"
    title = "Memory and CPU over time"
    about = "From the start of the engine on, at 60 and 80 queries: memory, cores, collections."
    columns = "workload policy queries mean_s p99_s memory_bytes busy_cores collecting"
    uses = "workloads policies queries delays arrivals seconds cores cold seed"
    usual = Settings(queries=(60, 80), policies=("default", "fcfs", "klink-no-memory", "klink"))

    def _run(self, settings: Settings, show: Show) -> Findings:
        base = replace(base_trial(settings), warmup_s=0.0)
        done = run_all(
            trials(
                base,
                1,
                policy=settings.policies,
                queries=settings.queries,
                **streams(settings),
            ),
            show,
        )
        panels = []
        for setting in dict.fromkeys((t.workload, t.queries, t.delays) for t, _ in done):
            mine = {
                t.policy: o.usage[0]
                for t, o in done
                if (t.workload, t.queries, t.delays) == setting
            }
            where = "{}, {} queries, {}".format(*setting)
            for title, label, figure in _FIGURES:
                lines = {policy: _line(usage, figure) for policy, usage in mine.items()}
                panels.append(panel(f"{title}, {where}", "", "seconds", label, lines))
        return {"rows": rows(done), "panels": panels}


_FIGURES: tuple[tuple[str, str, Callable[[Usage], float]], ...] = (
    ("Memory", "GB", lambda use: use.memory_bytes / 1e9),
    ("Cores at work on events", "cores", lambda use: use.busy_cores),
    ("Cores that collect garbage", "%", lambda use: 100 * use.collecting),
)


def _line(usage: Sequence[Usage], figure: Callable[[Usage], float]) -> dict[float, float]:
    """Return means of equal stretches."""
    begin_s = usage[0].at_s
    parts = np.array_split(np.array([(u.at_s - begin_s, figure(u)) for u in usage]), POINTS)
    return {float(p[:, 0].mean()): float(p[:, 1].mean()) for p in parts if len(p)}
