"""Very many queries on very many nodes."""

from dataclasses import replace
from typing import Any

from slackwater.simulate.experiment import (
    Experiment,
    Options,
    Show,
    base_trial,
    panel,
    row_series,
    rows,
    run_all,
    trials,
)
from slackwater.simulate.fleets import DEPLOYED_WITHIN_S

QUERIES_A_NODE = 50  # of 24 cores


class Scale(Experiment):
    """10,000 queries on 200 nodes, with a scheduler on each node."""

    name = "scale"
    title = "10,000 queries on 200 nodes"
    about = "50 queries a node at 1.6 times their usual rate, so that cores are as busy as with 80."
    columns = "queries nodes policy mean_s p99_s events_per_s windows took_s"
    uses = "policies queries seconds repeat cores cold seed"

    def run(self, options: Options, show: Show) -> dict[str, Any]:
        queries = (options.queries or (10_000,))[0]
        nodes = max(2, queries // QUERIES_A_NODE)
        seconds = options.seconds or 32.0
        base = replace(
            base_trial(options, seconds),
            queries=queries,
            nodes=nodes,
            load=1.6,
            warmup_s=min(DEPLOYED_WITHIN_S, seconds / 2),
        )
        chosen = options.policies or ("default", "fcfs", "klink")
        done = run_all(trials(base, options.repeat, policy=chosen), show)
        found = rows(done)
        series = {
            label: row_series(found, key, lambda row: row["policy"], lambda row: row["queries"])
            for key, label in (("mean_s", "mean"), ("p99_s", "p99"))
        }
        panels = [
            panel(f"{label} latency", "", "queries", f"{label} latency, s", lines)
            for label, lines in series.items()
        ]
        return {"rows": found, "panels": panels}
