"""Compares policies on a mixed fleet, and shows them by kind of query."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table

from slackwater.report.result import BenchResult
from slackwater_bench.comparison import Comparison, Show, Step, turns
from slackwater_bench.journal import Entry, Journal
from slackwater_bench.mixed.trial import MixedTrial
from slackwater_bench.mixed.verdict import mean_of, verdict
from slackwater_bench.rivals import Arm
from slackwater_bench.tables import figures_table


def compare(
    arms: Sequence[Arm[MixedTrial]],
    repeats: int,
    journal: Journal,
    show: Show,
    alone: BenchResult | None = None,
) -> BenchResult:
    """Run what the journal does not hold; the result is as in docs/bench-json.md.

    ``alone`` is an earlier one, of the fleet without what it runs beside.
    """
    steps = [
        Step(
            arm.trial,
            {"policy": arm.name, "repeat": repeat},
            f"{arm.name}, repeat {repeat + 1}",
        )
        for repeat, order in turns(arms, repeats)
        for arm in order
    ]
    head = {"benchmark": "mixed", "settings": asdict(arms[0].trial)}
    comparison = Comparison(head, journal, show)
    comparison.refuse_others("runs", steps)
    comparison.expect("runs", steps)
    comparison.run("runs", steps)
    if (judged := verdict(comparison.result, alone)) is not None:
        comparison.result["verdict"] = judged
        journal.save(comparison.result)
    return comparison.result


def table(result: BenchResult) -> Table:
    """Return a row for each kind of query and a column for each arm; repeats are averaged."""
    runs: list[Entry] = result["runs"]
    arms = list(dict.fromkeys(run["policy"] for run in runs))
    done = {arm: [r for r in runs if r["policy"] == arm and "error" not in r] for arm in arms}
    grid = figures_table(
        "mixed fleet: mean / p99 seconds from a window's end to its result, or age of the newest "
        "row shown",
        "kind, queries, source alone",
        *arms,
        "klink ÷ best",
        names=1,
    )
    judged = (result.get("verdict") or {}).get("kinds", {})
    kinds = {name: kind for run in runs for name, kind in run.get("kinds", {}).items()}
    for name, kind in kinds.items():
        cells = [_seconds(done[arm], name) for arm in arms]
        least_s = mean_of(
            [run["kinds"][name]["source_s"] for found in done.values() for run in found]
        )
        ratio = _figure(judged.get(name, {}).get("ratio"))
        title = f"{name} ({kind['measure']})"
        grid.add_row(title, str(kind["queries"]), _figure(least_s), *cells, ratio)
    grid.add_section()
    for label, key, digits in (
        ("CPU s", "cpu_s", 1),
        ("controller CPU s", "controller_cpu_s", 2),
        ("Python of driver and controller, CPU s", "python_cpu_s", 2),
        ("batches", "batches", 0),
    ):
        means = [_figure(mean_of([run[key] for run in done[arm]]), digits) for arm in arms]
        grid.add_row(label, "", "", *means)
    for label, share in (
        ("controller, % of the machine", "controller_share"),
        ("Python of both, % of the fleet's CPU", "python_share"),
    ):
        shares = [mean_of([run[share] for run in done[arm]]) for arm in arms]
        percent = [_figure(None if part is None else 100 * part) for part in shares]
        grid.add_row(label, "", "", *percent)
    counts = {
        "failed queries": lambda run: len(run["failures"]),
        "queries with wrong results": lambda run: len(run["mistakes"]),
        "windows that did not come": lambda run: sum(k["missing"] for k in run["kinds"].values()),
    }
    for label, count in counts.items():
        grid.add_row(label, "", "", *(str(sum(map(count, done[arm]))) for arm in arms))
    return grid


def bars_table(result: BenchResult) -> Table | None:
    """Return which bars are met and which are missed; ``None`` where there are none."""
    bars: list[Entry] = (result.get("verdict") or {}).get("bars", [])
    if not bars:
        return None
    grid = figures_table("what klink is to reach", "bar, found, limit, verdict", names=1)
    for bar in bars:
        sign = "≥" if bar["at_least"] else "≤"
        found = "met" if bar["met"] else "MISSED"
        grid.add_row(bar["bar"], f"{bar['value']:.3g}", f"{sign} {bar['limit']:g}", found)
    return grid


def _seconds(runs: Sequence[Entry], kind: str) -> str:
    figures = [run["kinds"][kind]["seconds"] for run in runs if kind in run["kinds"]]
    mean, high = (mean_of([each[key] for each in figures]) for key in ("mean", "p99"))
    return "" if mean is None else f"{_figure(mean)} / {_figure(high)}"


def _figure(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"
