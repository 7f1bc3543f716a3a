"""Very many queries on very many nodes."""

from dataclasses import replace

from slackwater.report.result import Findings
from slackwater_bench.comparison import Show
from slackwater_bench.simulate.experiment import (
    Experiment,
    base_trial,
    panel,
    row_series,
    rows,
    run_all,
    trials,
)
from slackwater_bench.simulate.fleets import DEPLOYED_WITHIN_S
from slackwater_bench.simulate.settings import Settings

QUERIES_A_NODE = 50  # of 24 cores


class Scale(Experiment):
    """10,000 queries on 200 nodes, with a scheduler on each node."""

    name = "scale"
    title = "10,000 queries on 200 nodes"
    about = "50 queries a node at 1.6 times their usual rate, so that cores are as busy as with 80."
    columns = "queries nodes policy mean_s p99_s events_per_s windows took_s"
    uses = "policies queries arrivals seconds repeat cores cold seed"
    usual = Settings(policies=("default", "fcfs", "klink"), queries=(10_000,), seconds=32.0)

    def _run(self, settings: Settings, show: Show) -> Findings:
        queries = settings.queries[0]
        nodes = max(2, queries // QUERIES_A_NODE)
        base = replace(
            base_trial(settings),
            nodes=nodes,
            load=1.6,
            warmup_s=min(DEPLOYED_WITHIN_S, settings.seconds / 2),
        )
        done = run_all(trials(base, settings.repeat, policy=settings.policies), show)
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
