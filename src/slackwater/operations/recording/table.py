"""A replay for people."""

from typing import Any

from rich.table import Table

from slackwater.statistics.intervals import summary


def replay_table(result: dict[str, Any]) -> Table:
    """Show the recorded run first, then what the model says."""
    settings = result["settings"]
    table = Table(
        title=f"{result['workload']}: {result['queries']} queries, {settings['seconds']:g} s, "
        f"{settings['slots']} slots; latency from a window's end to its result",
        title_justify="left",
    )
    table.add_column("policy")
    for name in ("windows", "mean s", "p50", "p90", "p99", "mean ÷ recorded", "batches"):
        table.add_column(name, justify="right")
    recorded = summary(result["runs"][0]["latencies_s"])["mean"]
    for run in result["runs"]:
        found = summary(run["latencies_s"])
        figures = [_text(found[key]) for key in ("mean", "p50", "p90", "p99")]
        mean = found["mean"]
        ratio = f"{mean / recorded:.2f}" if recorded and mean is not None else ""
        windows = str(len(run["latencies_s"]))
        table.add_row(run["policy"], windows, *figures, ratio, str(run["batches"]))
    return table


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
