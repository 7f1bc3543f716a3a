"""Compares policies: each once in every repeat, for every number of queries."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from slackwater.report.result import BenchResult
from slackwater_bench.comparison import Comparison, Show, Step, turns
from slackwater_bench.journal import Journal
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.klink.trigger_sweep import best_interval_s, sweep_outcome, sweep_trials
from slackwater_bench.rivals import Arm
from slackwater_bench.trial import Result

RUNS, SWEEP = "runs", "trigger_sweep"


def compare(
    arms: Sequence[Arm[PolicyTrial]],
    counts: Sequence[int],
    repeats: int,
    journal: Journal | None = None,
    show: Show = lambda line: None,
    run: Callable[[PolicyTrial], Result] | None = None,
) -> BenchResult:
    """Run what the journal does not hold; the result is as in docs/bench-json.md.

    Parameters
    ----------
    arms, counts, repeats
        Each arm with each number of queries, so many times.
    journal, show, run
        As :class:`~slackwater_bench.comparison.Comparison` takes them.
    """
    counts = list(dict.fromkeys(counts))
    sweep = sweep_steps(arms, max(counts))
    comparison = Comparison(_head(arms[0].trial, counts), journal, show, run)
    known = [comparison.journal.find(SWEEP, step.made) for step in sweep]
    # While a part of the sweep is missing no run can have been made with its outcome.
    interval_s = None if None in known else best_interval_s([e for e in known if e is not None])
    steps = plan(arms, counts, repeats, interval_s)
    comparison.refuse_others(RUNS, steps)
    comparison.expect(SWEEP, sweep)
    comparison.expect(RUNS, steps)
    interval_s = best_interval_s(comparison.run(SWEEP, sweep, sweep_outcome))
    comparison.run(RUNS, plan(arms, counts, repeats, interval_s))
    return comparison.result


def plan(
    arms: Sequence[Arm[PolicyTrial]], counts: Sequence[int], repeats: int, interval_s: float | None
) -> list[Step]:
    """Return all trials in their order; a whole repeat comes before the next."""
    return [
        _step(arm, queries, repeat, interval_s)
        for repeat, order in turns(arms, repeats)
        for queries in counts
        for arm in order
    ]


def sweep_steps(arms: Sequence[Arm[PolicyTrial]], queries: int) -> list[Step]:
    """Return the trials that find a trigger interval, where an arm wants one."""
    swept = [arm.trial for arm in arms if arm.swept]
    return [
        Step(
            trial,
            {"trigger_s": trial.trigger_s, "queries": queries},
            f"sweep: trigger every {trial.trigger_s:g} s, {queries} queries",
        )
        for trial in (sweep_trials(swept[0], queries) if swept else ())
    ]


def _step(arm: Arm[PolicyTrial], queries: int, repeat: int, interval_s: float | None) -> Step:
    """Return a step with another seed in each repeat, the same for all arms of it."""
    trial = replace(arm.trial, queries=queries, seed=arm.trial.seed + repeat)
    keys = {"policy": arm.name, "repeat": repeat, "queries": queries}
    line = f"{arm.name}, {queries} queries, repeat {repeat + 1}"
    if not arm.swept:
        return Step(trial, keys, line)
    why = "no trigger interval of the sweep could be measured" if interval_s is None else None
    return Step(replace(trial, trigger_s=interval_s), keys, line, open=("trigger_s",), refused=why)


def _head(base: PolicyTrial, counts: list[int]) -> dict[str, Any]:
    return {
        "workload": base.workload,
        "queries": max(counts),
        "query_counts": counts,
        "rate": float(base.rate) if base.rate.replace(".", "").isdigit() else base.rate,
        "window_s": base.window_s,
        "slide_s": base.slide_s,
        "settings": asdict(replace(base, queries=max(counts))),
    }
