"""A fleet of all kinds of queries on micro-batches."""

from itertools import product

from slackwater.report.result import Findings, Panel
from slackwater_bench.comparison import Show
from slackwater_bench.simulate.experiment import SPEED_S, Experiment, Row, panel, row_series
from slackwater_bench.simulate.mixed_trial import MixedSimulation, simulate_mixed
from slackwater_bench.simulate.settings import Settings
from slackwater_bench.time_left import TimeLeft

WARMUP_S = 60.0


class Mixed(Experiment):
    """The fleet of ``slackwater bench mixed`` at sizes that no machine at hand has."""

    name = "mixed"
    title = "A mixed fleet on micro-batches"
    about = (
        "Aligned and sliding windows, bursts, dashboards, stateless queries, slow sinks and silent "
        "sources on Spark's model of execution; `spark` holds nobody. A simulation, by kind."
    )
    columns = "cores policy queries kind of_kind measure source_s mean_s p99_s kept batches busy"
    uses = "policies queries seconds repeat cores seed"
    several_cores = True
    usual = Settings(
        policies=("spark", "fcfs", "klink-paper", "klink"),
        queries=(500,),
        cores=(16, 64),
        seconds=120.0,
    )

    def _run(self, settings: Settings, show: Show) -> Findings:
        wanted = [
            MixedSimulation(
                policy,
                queries=queries,
                cores=cores,
                seconds=settings.seconds,
                warmup_s=min(WARMUP_S, settings.seconds / 2),
                seed=settings.seed + number,
            )
            for cores, queries, policy, number in product(
                settings.cores, settings.queries, settings.policies, range(settings.repeat)
            )
        ]
        left, found = TimeLeft(), list[Row]()
        left.expect(*(SPEED_S * trial.queries * trial.seconds for trial in wanted))
        for trial in wanted:
            where = f"{trial.queries} queries on {trial.cores} cores, seed {trial.seed}"
            show(left.step(f"{trial.policy}, {where}"))
            found += simulate_mixed(trial)
        return {"rows": found, "panels": _panels(found)}


def _panels(found: list[Row]) -> list[Panel]:
    panels = []
    for queries, kind in dict.fromkeys((row["queries"], row["kind"]) for row in found):
        mine = [row for row in found if (row["queries"], row["kind"]) == (queries, kind)]
        if mine[0]["mean_s"] is None:
            continue
        what = "from a window's end to its result" if mine[0]["source_s"] else "age of its results"
        series = row_series(mine, "mean_s", lambda row: row["policy"], lambda row: row["cores"])
        title = f"{kind}, {queries} queries in all"
        panels.append(panel(title, f"Mean seconds: {what}.", "cores", "mean, s", series))
    series = row_series(found, "busy", lambda row: row["policy"], lambda row: row["cores"])
    caption = "Share of the cores that work."
    panels.append(panel("Cores used", caption, "cores", "share busy", series))
    return panels
