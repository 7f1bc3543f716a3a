"""What a micro-batch costs, with each setting of the session profile and without.

``python -m slackwater_bench.costs.session`` runs the same queries in a fresh JVM for each arm:
stock Spark, each setting alone, all settings, and all but each. Arms take turns over the repeats,
so that a machine that gets busier or quieter meets all of them.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Annotated

import typer

from slackwater.cli.terminal import JsonFile, console, with_status
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.session.profile import SETTINGS, settings_of
from slackwater_bench.comparison import Comparison, Show, Step, turns
from slackwater_bench.costs.session_tables import cost_table, phases_table, summarise, threads_table
from slackwater_bench.costs.session_trial import BatchCost, SessionTrial
from slackwater_bench.journal import Entry, Journal
from slackwater_bench.options import option, with_options

STOCK, ALL = "stock", "all"
KINDS = (STOCK, "alone", ALL, "without", "large")


@dataclass(frozen=True, kw_only=True)
class SessionCosts:
    """What is measured, and how often."""

    settings: tuple[str, ...] = option((), "Settings to try, by comma; all if empty.")
    arms: tuple[str, ...] = option(("stock", "alone", "all", "without"), "Kinds of arms, by comma.")
    repeats: int = option(3, least=1)
    seconds: float = option(15.0, "Measured time of an arm.", least=0.5)
    queries: int = option(4, "Concurrent queries.", least=1)
    rows: int = option(100, "Rows of a micro-batch.", least=1)
    warmup: int = option(40, "Batches per query not measured.", least=1)

    def __post_init__(self) -> None:
        known = [setting.name for setting in SETTINGS]
        for what, given, allowed in (
            ("setting", self.settings, known),
            ("arm", self.arms, list(KINDS)),
        ):
            if unknown := [name for name in given if name not in allowed]:
                raise UsageError(f"unknown {what} {unknown[0]!r}: use {', '.join(allowed)}")

    @property
    def trials(self) -> list[SessionTrial]:
        """Return one for each arm."""
        names = list(self.settings) or [setting.name for setting in SETTINGS]
        return [
            SessionTrial(name, chosen, self.queries, self.seconds, self.warmup, self.rows)
            for name, chosen in plan_arms(names, self.arms)
        ]


def plan_arms(names: list[str], kinds: Iterable[str] = KINDS) -> list[tuple[str, tuple[str, ...]]]:
    """Return arms as pairs of name and settings.

    >>> plan_arms(["a", "b"], ["stock", "alone", "all"])
    [('stock', ()), ('a', ('a',)), ('b', ('b',)), ('all', ('a', 'b'))]
    >>> plan_arms(["a", "b"], ["without"])
    [('-a', ('b',)), ('-b', ('a',))]
    """
    every = tuple(names)
    large = {setting.name for setting in settings_of("large")}
    arms: dict[str, list[tuple[str, tuple[str, ...]]]] = {
        STOCK: [(STOCK, ())],
        "alone": [(name, (name,)) for name in names],
        ALL: [(ALL, every)],
        "without": [(f"-{name}", tuple(n for n in names if n != name)) for name in names],
        "large": [("large", tuple(name for name in names if name in large))],
    }
    return [arm for kind in kinds for arm in arms[kind]]


def measure(costs: SessionCosts, journal: Journal, show: Show) -> list[Entry]:
    """Run every arm so many times, by turns; the summary is added at the end."""
    steps = [
        Step(trial, {"arm": trial.arm, "repeat": repeat}, f"{trial.arm}, repeat {repeat + 1}")
        for repeat, order in turns(costs.trials, costs.repeats)
        for trial in order
    ]
    asked = ("queries", "rows", "seconds", "warmup")
    head = {"options": {key: getattr(costs, key) for key in asked}}
    comparison = Comparison(head, journal, show, tolerant=False)
    comparison.expect("runs", steps)
    runs = comparison.run("runs", steps)
    comparison.result["summary"] = [asdict(row) for row in summarise(by_arm(runs), _baseline(runs))]
    journal.save(comparison.result)
    return runs


def by_arm(runs: Sequence[Entry]) -> dict[str, list[BatchCost]]:
    """Put the runs of each arm together, in the order of repeats."""
    names = [field.name for field in fields(BatchCost)]
    found: dict[str, list[BatchCost]] = {}
    for run in sorted(runs, key=lambda run: int(run["repeat"])):
        cost = BatchCost(**{name: run[name] for name in names})
        found.setdefault(run["arm"], []).append(cost)
    return found


def _baseline(runs: Sequence[Entry]) -> str:
    arms = [str(run["arm"]) for run in runs]
    return STOCK if STOCK in arms else arms[0]


def bench(
    costs: SessionCosts,
    phases: Annotated[bool, typer.Option(help="Also show where the time goes.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Measure CPU per micro-batch and batches per second for each setting of the profile."""
    runs = with_status(lambda show: measure(costs, Journal(json_file), show))
    results = by_arm(runs)
    summary = summarise(results, _baseline(runs))
    console.print(cost_table(summary, rows=costs.rows, queries=costs.queries))
    if phases:
        console.print(phases_table(results), threads_table(results))


def main() -> None:
    """Run the command."""
    app = typer.Typer(add_completion=False)
    app.command()(with_options(bench))
    try:
        app(standalone_mode=True)
    except SlackwaterError as error:
        print(f"slackwater: {error}", file=sys.stderr)
        sys.exit(error.exit_status)


if __name__ == "__main__":
    main()
