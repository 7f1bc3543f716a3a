"""Figures of engines beside each other: what ``bench versus`` has measured."""

from collections.abc import Sequence
from typing import Any

from slackwater.statistics.intervals import summary
from slackwater_bench.figures.markdown import Row, markdown_table, seconds, whole

Result = dict[str, Any]


def reduce(result: Result) -> list[Row]:
    """Return a row for each number of queries and arm, rounds pooled."""
    runs: list[Result] = result["runs"]
    places = sorted({run["queries"] for run in runs})
    arms = list(dict.fromkeys(run["arm"] for run in runs))
    return [
        _row(queries, arm, [r for r in runs if (r["queries"], r["arm"]) == (queries, arm)])
        for queries in places
        for arm in arms
    ]


def _row(queries: int, arm: str, runs: Sequence[Result]) -> Row:
    done = [run for run in runs if "error" not in run]
    row: Row = {"queries": queries, "arm": arm, "rounds": len(done)}
    if not done:
        why = str(runs[0]["error"]) if runs else "not run"
        return row | {"error": " ".join(why.replace("|", "/").split())}
    latency = summary([value for run in done for value in run["latencies_s"]])
    measured_s = sum(run["seconds"] for run in done)
    windows = [run["windows"] for run in done]
    return row | {
        "latency_s": latency,
        "windows": sum(one["expected"] for one in windows),
        "wrong": sum(one["wrong"] + one["expected"] - one["emitted"] for one in windows),
        "rows_per_s": round(sum(run["rows_written"] for run in done) / measured_s, 1),
        "cores": round(sum(run["cpu_s"] for run in done) / measured_s, 3),
        "memory_mb": round(max(run["memory_bytes"] for run in done) / 1e6),
    }


def table(rows: Sequence[Row]) -> str:
    """Write rows as a table."""
    heads = ["queries", "arm", "mean s", "p50", "p99", "windows; wrong", "rows/s", "cores", "MB"]
    return markdown_table(heads, map(_cells, rows), names=2)


def _cells(row: Row) -> list[str]:
    head = [str(row["queries"]), f"`{row['arm']}`"]
    if "error" in row:
        return [*head, row["error"], "", "", "", "", "", ""]
    latencies = [seconds(row["latency_s"][key]) for key in ("mean", "p50", "p99")]
    used = [whole(row["rows_per_s"]), f"{row['cores']:.2f}", whole(row["memory_mb"])]
    return [*head, *latencies, f"{row['windows']}; {row['wrong']}", *used]
