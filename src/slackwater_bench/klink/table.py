"""A comparison as a table."""

from typing import Literal

from rich.table import Table

from slackwater.statistics.intervals import summary
from slackwater_bench.klink.results import PolicyResult, PolicyRun, Summary
from slackwater_bench.tables import figures_table

Mean = Literal["throughput_eps", "batches", "wasted", "cpu_s", "controller_cpu_s"]
_FIGURES = ("p50", "p90", "p99", "max")


def table(result: PolicyResult) -> Table:
    """Return a block for each number of queries; repeats pooled, the first arm as reference."""
    slide = "" if result["slide_s"] == result["window_s"] else f" every {result['slide_s']:g} s"
    grid = figures_table(
        f"{result['workload']}: {result['rate']} events/s for each query, windows of "
        f"{result['window_s']:g} s{slide}; latency from a window's end to its result",
        "queries, policy, mean s, ideal, p50, p90, p99, max, mean ÷ first, p99 ÷ first, windows, "
        "wrong, events/s, batches, wasted, CPU s, controller CPU s",
        names=2,
    )
    names = list(dict.fromkeys(run["policy"] for run in result["runs"]))
    for count in result["query_counts"]:
        first: Summary | None = None
        for name in names:
            runs = [r for r in result["runs"] if (r["policy"], r["queries"]) == (name, count)]
            figures = summary([v for run in runs for v in run.get("latencies_s", ())])
            first = figures if first is None else first
            grid.add_row(str(count), *_cells(name, runs, figures, first))
        grid.add_section()
    return grid


def _cells(
    name: str,
    runs: list[PolicyRun],
    figures: Summary,
    first: Summary,
) -> list[str]:
    done = [run for run in runs if "error" not in run]
    if len(done) < len(runs):
        name = f"{name} ({len(runs) - len(done)} of {len(runs)} failed)"
    if not done:
        return [name]

    def mean(key: Mean, digits: int) -> str:
        return f"{sum(run[key] for run in done) / len(done):.{digits}f}"

    def ratio(key: str) -> str:
        mine, reference = figures[key], first[key]
        return f"{mine / reference:.2f}" if mine is not None and reference else ""

    ideals_s = [ideal for run in done for ideal in run.get("ideal_s", ()) if ideal is not None]
    windows = [run["windows"] for run in done]
    emitted, expected = (sum(each[key] for each in windows) for key in ("emitted", "expected"))
    return [
        name,
        _seconds(figures["mean"]),
        _seconds(sum(ideals_s) / len(ideals_s) if ideals_s else None),
        *(_seconds(figures[key]) for key in _FIGURES),
        ratio("mean"),
        ratio("p99"),
        f"{emitted}/{expected}",
        str(sum(each["wrong"] for each in windows)),
        mean("throughput_eps", 0),
        mean("batches", 0),
        mean("wasted", 0),
        mean("cpu_s", 1),
        mean("controller_cpu_s", 2),
    ]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
