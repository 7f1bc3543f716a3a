"""Scheduling at user level against scheduling through the operating system."""

from dataclasses import replace
from functools import partial

from slackwater.engines.simulator.operators import Execution
from slackwater.report.result import Findings
from slackwater_bench.comparison import Show
from slackwater_bench.simulate.experiment import (
    Experiment,
    Row,
    base_trial,
    panel,
    row_series,
    rows,
    run_all,
    trials,
)
from slackwater_bench.simulate.fleets import synthetic
from slackwater_bench.simulate.settings import Settings
from slackwater_bench.simulate.trial import Outcome, SimulatedTrial, run_fleet

QUERIES, CORES = 20, 4
LOADS = (0.5, 0.8, 0.9, 0.95, 1.05, 1.2)
BLOCKING = 0.1  # of the operators

# Name, how it executes, how often it decides.
LEVELS: tuple[tuple[str, Execution, float], ...] = (
    ("default", "threads", 1.0),
    ("user level, 50 ms", "cores", 0.05),
    ("OS level, 1 s", "priorities", 1.0),
)


class Levels(Experiment):
    """EdgeWise and Haren (worker threads, every 50 ms) against nice values every second."""

    name = "levels"
    title = "User-level against OS-level scheduling"
    about = (
        "20 synthetic queries on 4 cores under Queue Size. A worker thread that runs an operator "
        "which blocks is blocked as well; an operating system gives the core to another thread."
    )
    columns = "blocking level load mean_s p99_s events_per_s busy_cores windows"
    uses = "policies seconds repeat seed"
    usual = Settings(policies=("queue-size",), queries=(QUERIES,), seconds=120.0, cores=(CORES,))

    def _run(self, settings: Settings, show: Show) -> Findings:
        policy = settings.policies[0]
        base = replace(
            base_trial(settings),
            workload="synthetic",
            cold=False,
        )
        found: list[Row] = []
        for blocking in (0.0, BLOCKING):
            for name, execution, cycle_s in LEVELS:
                plain = "default" if execution == "threads" else policy
                arm = replace(base, policy=plain, cycle_s=cycle_s)
                wanted = trials(arm, settings.repeat, load=LOADS)
                done = run_all(wanted, show, partial(_run, execution, blocking))
                extra = {"level": name, "blocking": blocking}
                found += [row | extra for row in rows(done)]
        panels = [
            panel(
                f"{title}, {'blocking' if blocking else 'no blocking'} operators",
                "Against the share of the cores that the queries need.",
                "load",
                label,
                row_series(
                    [row for row in found if row["blocking"] == blocking],
                    key,
                    lambda row: row["level"],
                    lambda row: row["load"],
                ),
            )
            for blocking in (0.0, BLOCKING)
            for key, title, label in (
                ("mean_s", "Mean latency", "mean latency, s"),
                ("events_per_s", "Throughput", "events through operators, per second"),
            )
        ]
        return {"rows": found, "panels": panels}


def _run(execution: Execution, blocking: float, trial: SimulatedTrial) -> Outcome:
    queries = synthetic(
        trial.queries, cores=trial.cores, load=trial.load, blocking=blocking, seed=trial.seed
    )
    return run_fleet(trial, queries, execution)
