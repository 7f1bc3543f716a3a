"""Compares arms: each once in every repeat, for every number of queries, in alternating order."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.report.result import BenchResult
from slackwater_bench.apart import run_apart
from slackwater_bench.journal import Entry, Journal, settings_of
from slackwater_bench.pace import Pace, expected_s
from slackwater_bench.rivals import Arm
from slackwater_bench.sweep import best_interval_s, sweep_entry, sweep_trials
from slackwater_bench.trial import Trial


@dataclass(frozen=True, slots=True)
class Step:
    """One trial of the plan."""

    arm: Arm
    queries: int
    repeat: int

    def trial(self, interval_s: float | None) -> Trial:
        """Another seed in each repeat, the same for all arms of it."""
        trial = self.arm.trial
        if self.arm.swept:
            trial = replace(trial, trigger_s=interval_s)
        return replace(trial, queries=self.queries, seed=trial.seed + self.repeat)

    @property
    def keys(self) -> Entry:
        """What tells its run from others in a result."""
        return {"policy": self.arm.name, "repeat": self.repeat, "queries": self.queries}


def plan(arms: Sequence[Arm], counts: Sequence[int], repeats: int) -> list[Step]:
    """All trials in their order; a whole repeat comes before the next."""
    steps = []
    for repeat in range(repeats):
        order = arms if repeat % 2 == 0 else list(reversed(arms))
        steps += [Step(arm, queries, repeat) for queries in counts for arm in order]
    return steps


class Comparison:
    """Runs a plan; its result is what ``--json`` writes (docs/bench-json.md).

    Parameters
    ----------
    arms, counts, repeats
        Each arm with each number of queries, so many times.
    journal
        Keeps the result after every trial, and knows those that need not be run again.
    on_step
        Called with a line for people before each trial.
    run
        Runs one trial; default: in a process of its own.
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        counts: Sequence[int],
        repeats: int,
        journal: Journal | None = None,
        on_step: Callable[[str], None] = lambda line: None,
        run: Callable[[Trial], dict[str, Any]] | None = None,
    ) -> None:
        self.arms, self.counts = arms, list(dict.fromkeys(counts))
        self.steps = plan(arms, self.counts, repeats)
        self.journal = journal or Journal()
        self.on_step = on_step
        self._run_trial = run or run_apart
        self._sweep = self._planned_sweep()
        self.result = self._empty_result()
        self._refuse_strangers()

    def run(self) -> BenchResult:
        """Everything that the journal does not hold; trials that fail are noted."""
        pace = Pace([expected_s(trial) for trial in self._missing()])
        interval_s = self._find_interval(pace)
        for step in self.steps:
            self.result["runs"].append(self._run_step(step, interval_s, pace))
            self.journal.save(self.result)
        return self.result

    def _run_step(self, step: Step, interval_s: float | None, pace: Pace) -> Entry:
        trial = step.trial(interval_s)
        if known := self.journal.find("runs", trial, **step.keys):
            return known
        line = f"{step.arm.name}, {step.queries} queries, repeat {step.repeat + 1}"
        self.on_step(pace.step(line))
        if step.arm.swept and interval_s is None:
            outcome: Entry = {"error": "no trigger interval of the sweep could be measured"}
        else:
            outcome = self._outcome(trial)
        return step.keys | outcome | {"trial": settings_of(trial)}

    def _find_interval(self, pace: Pace) -> float | None:
        entries = self.result["trigger_sweep"]
        for trial in self._sweep:
            entry = self.journal.find("trigger_sweep", trial)
            if entry is None:
                line = f"sweep: trigger every {trial.trigger_s:g} s, {trial.queries} queries"
                self.on_step(pace.step(line))
                entry = sweep_entry(trial, self._outcome(trial)) | {"trial": settings_of(trial)}
            entries.append(entry)
            self.journal.save(self.result)
        return best_interval_s(entries)

    def _outcome(self, trial: Trial) -> Entry:
        try:
            return self._run_trial(trial)
        except SlackwaterError as error:
            return {"error": str(error)}

    def _planned_sweep(self) -> list[Trial]:
        swept = [arm for arm in self.arms if arm.swept]
        return sweep_trials(swept[0].trial, max(self.counts)) if swept else []

    def _missing(self) -> list[Trial]:
        """Trials to be run, for the estimate of time."""
        known = [self.journal.find("trigger_sweep", trial) for trial in self._sweep]
        sweep = [t for t, entry in zip(self._sweep, known, strict=True) if entry is None]
        # While a part of the sweep is missing no run can have been made with its outcome.
        interval_s = None if sweep else best_interval_s([e for e in known if e is not None])
        runs = [(step, step.trial(interval_s)) for step in self.steps]
        return sweep + [t for s, t in runs if not self.journal.find("runs", t, **s.keys)]

    def _refuse_strangers(self) -> None:
        """Runs that the plan does not ask for would be lost with the first save."""
        planned = [(step, settings_of(step.trial(None))) for step in self.steps]
        strangers = [
            entry
            for entry in self.journal.entries("runs")
            if not any(_is_run_of(entry, step, settings) for step, settings in planned)
        ]
        if strangers:
            raise UsageError(
                f"{self.journal.path} holds {len(strangers)} trials that were not asked for, such "
                f"as {strangers[0].get('policy')} with other settings; give another --json FILE or "
                "leave out --resume to replace it"
            )

    def _empty_result(self) -> BenchResult:
        base = self.arms[0].trial
        shown: dict[str, Any] = {
            "workload": base.workload,
            "queries": max(self.counts),
            "query_counts": self.counts,
            "rate": float(base.rate) if base.rate.replace(".", "").isdigit() else base.rate,
            "window_s": base.window_s,
            "slide_s": base.slide_s,
            "settings": asdict(replace(base, queries=max(self.counts))),
            "trigger_sweep": [],
            "runs": [],
        }
        return BenchResult(shown)


def _is_run_of(entry: Entry, step: Step, settings: Entry) -> bool:
    """Whether an entry is a step's, whatever interval the sweep finds."""
    found = dict(entry.get("trial") or {})
    if step.arm.swept:
        found["trigger_s"] = None
    return found == settings and all(entry.get(k) == v for k, v in step.keys.items())
