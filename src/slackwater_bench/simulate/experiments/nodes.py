"""Several nodes, with and without what they tell each other."""

from collections.abc import Sequence
from dataclasses import replace

from slackwater.core.errors import UsageError
from slackwater.report.result import Findings
from slackwater_bench.comparison import Show
from slackwater_bench.simulate.experiment import (
    Experiment,
    base_trial,
    latency_series,
    panel,
    rows,
    run_all,
    trials,
)
from slackwater_bench.simulate.settings import Settings
from slackwater_bench.simulate.trial import SimulatedTrial

UNEVEN, NEARLY_FULL = 4.0, 1.2  # how costly, and the factor on rates: 95 % of the cores
LOCAL = "klink, forwarding off"


class Nodes(Experiment):
    """Klink's figure 6e: queries spread over nodes, a scheduler on each."""

    name = "nodes"
    title = "One to eight nodes"
    about = (
        "Every query is split over two nodes. Once with as many queries a node (the load of each "
        "node stays), once with the same queries on more and more nodes (as published), once "
        "uneven: warm, cores 95 % busy, one query of ten four times as costly on its second node."
    )
    columns = "load nodes queries policy mean_s p99_s events_per_s windows"
    uses = "policies queries nodes arrivals seconds repeat cores cold seed"
    usual = Settings(
        policies=("default", "fcfs", "round-robin", "klink"), nodes=(1, 2, 4, 8), seconds=1200.0
    )

    def _run(self, settings: Settings, show: Show) -> Findings:
        each, several = settings.queries[0], [count for count in settings.nodes if count > 1]
        if each < max(settings.nodes):
            raise UsageError(f"nodes needs at least {max(settings.nodes)} queries, not {each}")
        base = base_trial(settings)
        hard = replace(base, uneven=UNEVEN, load=NEARLY_FULL, cold=False)
        wanted = {
            "grows": _each(each, _trials(base, settings, settings.nodes)),
            "stays": _trials(base, settings, several),
            "uneven": _each(each, _trials(hard, settings, several)),
        }
        done = {load: run_all(some, show) for load, some in wanted.items()}
        alone = [pair for pair in done["grows"] if pair[0].nodes == 1]
        titles = (f"{each} queries a node", f"{each} queries in all", "An uneven fleet")
        panels = [
            panel(
                title,
                "Mean latency; forwarding off: no node knows the rest of its queries.",
                "nodes",
                "mean latency, s",
                latency_series(
                    alone + some if load == "stays" else some, _name, lambda trial: trial.nodes
                ),
            )
            for title, (load, some) in zip(titles, done.items(), strict=True)
        ]
        found = [row | {"load": load} for load, some in done.items() for row in rows(some)]
        for row in found:
            row["policy"] = row["policy"] if row["forwarding"] else LOCAL
        return {"rows": found, "panels": panels}


def _trials(
    base: SimulatedTrial, settings: Settings, counts: Sequence[int]
) -> list[SimulatedTrial]:
    every = trials(base, settings.repeat, policy=settings.policies, nodes=counts)
    deaf = replace(base, policy="klink", forwarding=False)
    local = trials(deaf, settings.repeat, nodes=counts) if "klink" in settings.policies else []
    return every + [trial for trial in local if trial.nodes > 1]


def _each(queries: int, found: list[SimulatedTrial]) -> list[SimulatedTrial]:
    return [replace(trial, queries=queries * trial.nodes) for trial in found]


def _name(trial: SimulatedTrial) -> str:
    return trial.policy if trial.forwarding else LOCAL
