"""Compares samplers: each once for every workload, setting and rate in every repeat."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater_bench.aion.trial import DRAIN_LIMIT_S, SETTINGS, START_LIMIT_S, AionTrial
from slackwater_bench.apart import run_in_process
from slackwater_bench.pace import Pace
from slackwater_bench.workload_choice import workload_text

JUDGING = 1.0  # the truth of a query takes at most so many times as long as its events do
OVERHEAD_S = 25.0  # a trial takes so much longer than it measures


@dataclass(frozen=True)
class Step:
    """One trial, and what tells it from others in a result."""

    trial: AionTrial
    setting: str
    repeat: int

    @property
    def keys(self) -> dict[str, Any]:
        trial = self.trial
        return {
            "workload": workload_text(trial.workload, trial.options),
            "setting": self.setting,
            "rate": trial.rate,
            "sampler": trial.sampler,
            "repeat": self.repeat,
        }

    @property
    def line(self) -> str:
        """For people."""
        keys = self.keys
        return ", ".join(str(keys[k]) for k in ("workload", "setting", "rate", "sampler"))


def plan(
    base: AionTrial,
    workloads: Sequence[tuple[str, dict[str, Any]]],
    settings: Sequence[str],
    rates: Sequence[str],
    samplers: Sequence[str],
    repeats: int,
) -> list[Step]:
    """All trials; the order of the samplers alternates."""
    steps = []
    for repeat in range(repeats):
        order = samplers if repeat % 2 == 0 else list(reversed(samplers))
        for workload, options in workloads:
            for setting in settings:
                delays, gaps = _setting(setting)
                for rate in rates:
                    steps += [
                        Step(
                            replace(
                                base,
                                sampler=sampler,
                                workload=workload,
                                options=options,
                                delays=delays,
                                gaps=gaps,
                                rate=rate,
                                seed=base.seed + repeat,
                            ),
                            setting,
                            repeat,
                        )
                        for sampler in order
                    ]
    return steps


def compare(
    steps: Sequence[Step],
    show: Callable[[str], None],
    save: Callable[[dict[str, Any]], None] = lambda result: None,
    run: Callable[[AionTrial], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Run all trials; one that fails is noted."""
    result: dict[str, Any] = {"benchmark": "aion", "runs": []}
    pace = Pace([s.trial.seconds + s.trial.warmup_s + OVERHEAD_S for s in steps])
    for step in steps:
        show(pace.step(step.line))
        try:
            outcome = (run or _run_apart)(step.trial)
        except SlackwaterError as error:
            outcome = {"error": str(error)}
        result["runs"].append(step.keys | outcome | {"trial": asdict(step.trial)})
        save(result)
    return result


def _run_apart(trial: AionTrial) -> dict[str, Any]:
    limit_s = 60 + START_LIMIT_S + trial.warmup_s + trial.seconds + DRAIN_LIMIT_S
    limit_s += JUDGING * trial.queries * trial.seconds
    return run_in_process(
        "slackwater_bench.aion.trial", asdict(trial), f"a trial of {trial.sampler}", limit_s
    )


def _setting(name: str) -> tuple[str, str]:
    """Delays and gaps, of a named setting or written out with a slash between them."""
    if "/" in name:
        delays, _, gaps = name.partition("/")
        return delays, gaps
    if name not in SETTINGS:
        raise UsageError(f"unknown setting {name!r}; known: {', '.join(SETTINGS)}")
    return SETTINGS[name]
