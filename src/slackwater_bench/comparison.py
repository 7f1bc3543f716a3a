"""One comparison for all benchmarks: trials by turns, kept on disk after each, with time left."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.report.result import BenchResult
from slackwater_bench.journal import Entry, Journal
from slackwater_bench.time_left import TimeLeft
from slackwater_bench.trial import Result, Trial, run_in_process

Arm = TypeVar("Arm")
Show = Callable[[str], None]


def turns(arms: Sequence[Arm], repeats: int) -> Iterator[tuple[int, Sequence[Arm]]]:
    """Yield each repeat with the order of its arms; every second one goes backwards.

    >>> list(turns("ab", 3))
    [(0, 'ab'), (1, 'ba'), (2, 'ab')]
    """
    for repeat in range(repeats):
        yield repeat, arms if repeat % 2 == 0 else arms[::-1]


@dataclass(frozen=True)
class Step:
    """One trial of a plan."""

    trial: Trial
    keys: Entry  # what tells its run from others in a result
    line: str  # for people
    open: tuple[str, ...] = ()  # settings that are found while the plan is carried out
    refused: str | None = None  # why it cannot be run

    @property
    def given(self) -> Entry:
        """Return what a result says of its settings, where the keys do not say it all."""
        settings = self.trial.to_json()
        return {} if settings == self.keys else {"trial": settings}

    def made(self, entry: Entry, *, exactly: bool = True) -> bool:
        """Tell whether an entry of a result is this step's; open settings need not be equal."""
        hidden: Entry = {} if exactly else dict.fromkeys(self.open)
        found = (entry.get("trial") or {}) | hidden
        same = found == (self.given.get("trial") or {}) | hidden
        return same and all(entry.get(key) == value for key, value in self.keys.items())


class Comparison:
    """Runs steps; its result is what ``--json`` writes.

    Parameters
    ----------
    head
        What the result says besides its runs.
    journal
        Keeps the result after every trial, and knows those that need not be run again.
    show
        Called with a line for people before each trial.
    run
        Runs one trial; default: in a process of its own.
    by
        Runs are kept by this key instead of in a list.
    tolerant
        A trial that fails is noted and the others go on; else it ends the comparison.
    """

    def __init__(
        self,
        head: Mapping[str, Any],
        journal: Journal | None = None,
        show: Show = lambda line: None,
        run: Callable[[Any], Result] | None = None,
        *,
        by: str | None = None,
        tolerant: bool = True,
    ) -> None:
        self.result = BenchResult(head)
        self.journal = journal or Journal()
        self.left = TimeLeft()
        self._show, self._run = show, run or run_in_process
        self._by, self._tolerant = by, tolerant

    def expect(self, section: str, steps: Sequence[Step]) -> None:
        """Count on the time of those that the journal does not hold."""
        missing = [step for step in steps if self.journal.find(section, step.made) is None]
        self.left.expect(*(step.trial.expected_s for step in missing))

    def refuse_others(self, section: str, steps: Sequence[Step]) -> None:
        """Refuse a file with runs that the plan does not have: the first save would lose them."""
        others = [
            entry
            for entry in self.journal.entries(section)
            if not any(step.made(entry, exactly=False) for step in steps)
        ]
        if others:
            raise UsageError(
                f"{self.journal.path} holds {len(others)} trials that were not asked for, such as "
                f"{others[0].get('policy')} with other settings; give another --json FILE or leave "
                "out --resume to replace it"
            )

    def run(
        self, section: str, steps: Sequence[Step], keep: Callable[[Result], Result] = dict
    ) -> list[Entry]:
        """Run the steps of a section; ``keep`` says what of an outcome goes to the result."""
        self.result.setdefault(section, {} if self._by else [])
        return [self.run_step(section, step, keep) for step in steps]

    def run_step(self, section: str, step: Step, keep: Callable[[Result], Result] = dict) -> Entry:
        """Run one step unless the journal holds it."""
        entry = self.journal.find(section, step.made)
        if entry is None:
            self._show(self.left.step(step.line))
            entry = step.keys | keep(self._outcome(step)) | step.given
        if self._by:
            name = entry.pop(self._by)
            self.result.setdefault(section, {})[name] = entry
        else:
            self.result.setdefault(section, []).append(entry)
        self.journal.save(self.result)
        return entry

    def _outcome(self, step: Step) -> Result:
        if step.refused is not None:
            return {"error": step.refused}
        try:
            return self._run(step.trial)
        except SlackwaterError as error:
            if not self._tolerant:
                raise
            return {"error": str(error)}


def refuse_failures(runs: Sequence[Entry], name: Callable[[Entry], str], write: Show) -> None:
    """Write a line for each trial that failed, and raise an error if there is one."""
    failed = [run for run in runs if "error" in run]
    for run in failed:
        write(f"failed: {name(run)}: {run['error']}")
    if failed:
        raise SlackwaterError(f"{len(failed)} of {len(runs)} trials failed")


def refuse_bad_windows(runs: Sequence[Entry], arm: str, write: Show) -> None:
    """Raise an error if trials failed, or windows are wrong or did not come.

    Parameters
    ----------
    arm
        The key of a run under which it says what was tried.
    """
    refuse_failures(
        runs,
        lambda run: f"{run[arm]}, {run['queries']} queries, repeat {run['repeat'] + 1}",
        write,
    )
    if any(run["windows"]["wrong"] for run in runs):
        raise SlackwaterError("some windows differ from the ground truth")
    if any(run["windows"]["emitted"] < run["windows"]["expected"] for run in runs):
        raise SlackwaterError("some windows did not come before the time limit: overloaded")
