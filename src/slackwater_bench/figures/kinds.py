"""Figures of mixed fleets, by kind of query: what ``bench mixed`` has measured."""

from collections.abc import Sequence
from typing import Any

from slackwater.statistics.intervals import mean_interval
from slackwater_bench.figures.markdown import Row, markdown_table, rounded, seconds, whole
from slackwater_bench.mixed.verdict import mean_of

Result = dict[str, Any]


def reduce(result: Result) -> list[Row]:
    """Return a row for each kind, and one for each figure of the fleet as a whole."""
    runs = [run for run in result["runs"] if "error" not in run]
    arms = list(dict.fromkeys(run["policy"] for run in runs))
    done = {arm: [run for run in runs if run["policy"] == arm] for arm in arms}
    judged = (result.get("verdict") or {}).get("kinds", {})
    kinds = list(dict.fromkeys(name for run in runs for name in run["kinds"]))
    rows = [_kind(name, done, judged.get(name, {})) for name in kinds]
    for title, key in (("CPU s", "cpu_s"), ("batches", "batches")):
        rows.append({"kind": title, "measure": "sum", "arms": _sums(done, key)})
    counts = {arm: float(sum(len(r["mistakes"]) + len(r["failures"]) for r in found))
              for arm, found in done.items()}  # fmt: skip
    rows.append({"kind": "queries wrong or failed", "measure": "sum", "arms": counts})
    return rows


def _kind(name: str, done: dict[str, list[Result]], judged: dict[str, Any]) -> Row:
    having = {
        arm: [run["kinds"][name] for run in runs if name in run["kinds"]]
        for arm, runs in done.items()
    }
    return {
        "kind": name,
        "measure": judged.get("measure"),
        "arms": {arm: _mean_s(kinds) for arm, kinds in having.items()},
        "kept": {arm: mean_of([kind["kept"] for kind in kinds]) for arm, kinds in having.items()},
        "source_s": judged.get("source_s"),
        "best": judged.get("best"),
        "ratio": judged.get("ratio"),
        "rounds": max(map(len, having.values()), default=0),
    }


def _mean_s(kinds: Sequence[dict[str, Any]]) -> list[float | None]:
    means = [[kind["seconds"]["mean"]] for kind in kinds if kind["seconds"]["mean"] is not None]
    if not means:
        return [None, None, None]
    return rounded(mean_interval(means))


def _sums(done: dict[str, list[Result]], key: str) -> dict[str, float | None]:
    return {arm: mean_of([run[key] for run in runs]) for arm, runs in done.items()}


def table(rows: Sequence[Row]) -> str:
    """Write rows as a table: mean seconds, an interval of 95 % over the rounds in brackets."""
    arms = list(rows[0]["arms"])
    heads = ["", *(f"`{arm}`" for arm in arms), "the source alone", "klink ÷ best"]
    body = []
    for row in rows:
        if row["measure"] == "sum":
            cells = [whole(row["arms"][arm]) for arm in arms]
            body.append([row["kind"], *cells, "", ""])
            continue
        cells = [_short(row["arms"][arm], exact=arm == arms[-1]) for arm in arms]
        body.append([row["kind"], *cells, seconds(row["source_s"]), seconds(row["ratio"])])
        if row["kept"].get(arms[-1]) is not None:
            kept = ["" if (k := row["kept"][arm]) is None else f"{100 * k:.1f} %" for arm in arms]
            body.append(["… its target kept", *kept, "", ""])
    return markdown_table(heads, body, names=1)


def _short(figure: Sequence[float | None], *, exact: bool) -> str:
    """Write a mean; its interval only where it matters, or the table is too wide."""
    return seconds(figure if exact else figure[0])
