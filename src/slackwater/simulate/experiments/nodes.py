"""Several nodes, with and without what they tell each other."""

from dataclasses import replace
from typing import Any

from slackwater.core.errors import UsageError
from slackwater.simulate.experiment import (
    Experiment,
    Options,
    Show,
    base_trial,
    latency_series,
    panel,
    rows,
    run_all,
    trials,
)
from slackwater.simulate.trial import Trial

COUNTS = (1, 2, 4, 8)
LOCAL = "klink, forwarding off"


class Nodes(Experiment):
    """Klink's figure 6e: queries spread over nodes, a scheduler on each."""

    name = "nodes"
    title = "One to eight nodes"
    about = (
        "Every query is split over two nodes. Once with as many queries a node (the load of each "
        "node stays), once with the same queries on more and more nodes (as published)."
    )
    columns = "load nodes queries policy mean_s p99_s events_per_s windows"
    uses = "policies queries seconds repeat cores cold seed"

    def run(self, options: Options, show: Show) -> dict[str, Any]:
        chosen = options.policies or ("default", "fcfs", "round-robin", "klink")
        each = (options.queries or (80,))[0]
        if each < max(COUNTS):
            raise UsageError(f"nodes needs at least {max(COUNTS)} queries, not {each}")
        seconds = options.seconds or 300.0
        # Queues that a cold start has left must be gone before differences count.
        base = replace(base_trial(options, seconds), warmup_s=0.6 * seconds)
        grown = [replace(t, queries=each * t.nodes) for t in _trials(base, options, chosen, COUNTS)]
        fixed = [replace(t, queries=each) for t in _trials(base, options, chosen, COUNTS[1:])]
        done_grown, done_fixed = run_all(grown, show), run_all(fixed, show)
        same = [pair for pair in done_grown if pair[0].nodes == 1]
        panels = [
            panel(
                f"{each} queries a node" if growing else f"{each} queries in all",
                "Mean latency; forwarding off: no node knows the rest of its queries.",
                "nodes",
                "mean latency, s",
                latency_series(done, _name, lambda trial: trial.nodes),
            )
            for growing, done in ((True, done_grown), (False, same + done_fixed))
        ]
        found = [row | {"load": "grows"} for row in rows(done_grown)]
        found += [row | {"load": "stays"} for row in rows(done_fixed)]
        for row in found:
            row["policy"] = row["policy"] if row["forwarding"] else LOCAL
        return {"rows": found, "panels": panels}


def _trials(base: Trial, options: Options, policies: Any, counts: tuple[int, ...]) -> list[Trial]:
    every = trials(base, options.repeat, policy=policies, nodes=counts)
    local = trials(replace(base, forwarding=False), options.repeat, policy=("klink",), nodes=counts)
    return every + [trial for trial in local if trial.nodes > 1 and "klink" in policies]


def _name(trial: Trial) -> str:
    return trial.policy if trial.forwarding else LOCAL
