"""Pages of overload, of rising load and of scenarios: what happened over time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes

from slackwater.report.drawing import Plot, plot
from slackwater.report.page import assemble, write_page
from slackwater.report.palette import Palette
from slackwater_bench.quality import ramp
from slackwater_bench.quality.checks import delivered
from slackwater_bench.quality.overload import CALM_S, best_fixed, figures
from slackwater_bench.quality.results import (
    FleetSample,
    OverloadResult,
    QualityRun,
    QueryFile,
    RampResult,
    ScenarioResult,
)
from slackwater_bench.quality.scenarios import LOADS, WORKERS

Point = tuple[float, float]  # seconds and value
Series = Mapping[str, Sequence[Point]]  # by name

LAG = "Lag is how long the oldest row had waited that no micro-batch had taken."


def write_overload_report(result: OverloadResult, folder: Path) -> Path:
    """Write ``index.html``."""
    best = best_fixed(result)
    arms = [arm for arm in ("plain", best, "slackwater") if arm is not None]
    palette, runs = Palette(arms), result["runs"]
    found = {arm: figures(runs[arm]) for arm in arms}
    lags = ", ".join(f"{arm} {found[arm]['lag_s']:.1f} s" for arm in arms)
    parts = ", ".join(f"{arm} {found[arm]['accuracy']:.0%}" for arm in arms)
    text = assemble(
        title="More input than the machine can take",
        lines=[
            f"{result['rate']} rows/s where {result['capacity']:.0f} can be processed, after "
            f"{CALM_S:g} s of a tenth of that.",
            LAG,
        ],
        plots=[
            over_time(
                "lag",
                "Lag, s",
                f"Largest after settling: {lags}.",
                {arm: _lags(runs[arm]) for arm in arms},
                palette,
            ),
            over_time(
                "accuracy",
                "Accuracy",
                f"After settling: {parts}.",
                {arm: _parts(runs[arm]) for arm in arms},
                palette,
                top=1.05,
            ),
        ],
        settings={"seconds": result["seconds"]},
    )
    return write_page(text, folder)


def write_ramp_report(result: RampResult, folder: Path) -> Path:
    """Write ``index.html``."""
    palette, runs = Palette(ramp.ARMS), result["runs"]
    steps = {arm: ramp.figures(result, arm) for arm in ramp.ARMS}
    shown = {"rows_per_s": "Rows processed a second", "latency_s": "Seconds from row to result"}
    plots = [
        over_time("lag", "Lag, s", LAG, {a: _lags(runs[a]) for a in ramp.ARMS}, palette),
        over_time(
            "accuracy",
            "Accuracy",
            "What is kept.",
            {a: _parts(runs[a]) for a in ramp.ARMS},
            palette,
            top=1.05,
        ),
    ]
    for key, title in shown.items():
        series = {
            arm: [(step["level"], step[key]) for step in found] for arm, found in steps.items()
        }
        words = "By load, as a multiple of what can be processed."
        plots.append(over_time(key, title, words, series, palette, along="load"))
    text = assemble(
        title="A rate that rises past what the machine can take",
        lines=[
            f"{result['capacity']:.0f} rows/s can be processed; each of "
            f"{', '.join(f'{level:g}' for level in ramp.LEVELS)} times that for "
            f"{result['step_s']:g} s."
        ],
        plots=plots,
        settings={"step_s": result["step_s"]},
    )
    return write_page(text, folder)


def write_scenario_report(result: ScenarioResult, folder: Path) -> Path:
    """Write ``index.html``."""
    samples, queries = result["samples"], result["queries"]
    by_query = partial(_by_query, queries)
    moves = result["checks"]["moves"]
    moved = "; ".join(f"{each['query']} at {each['at_s']:.0f} s" for each in moves) or "none"
    load = f"{', '.join(f'{part:g}' for part in LOADS)} for {result['step_s']:g} s each"
    text = assemble(
        title=f"Scenario {result['scenario']}",
        lines=[f"{result['rate']:g} rows/s at load 1; load {load}. Moves: {moved}."],
        plots=[
            by_query(
                "decided",
                "Accuracy that was decided",
                "Of the application's input, by query.",
                lambda name: _rows(samples, name, "desired"),
                top=1.05,
            ),
            by_query(
                "measured",
                "Accuracy that was measured",
                "What came through the shedders of the query and of its sources.",
                lambda name: _delivered(samples, name, queries),
                top=1.05,
            ),
            by_query(
                "lag",
                "Lag, s of input",
                "What waited when a micro-batch ended.",
                lambda name: _rows(samples, name, "lag_s"),
            ),
            by_query(
                "rate",
                "Rows a second that arrive, as estimated",
                "At sources from what arrives, elsewhere from what sources let through.",
                lambda name: _rows(samples, name, "rate"),
            ),
            _cores(samples),
        ],
        settings={
            "rate": result["rate"],
            "step_s": result["step_s"],
            "references": result["references"],
            **result["checks"],
        },
    )
    return write_page(text, folder)


def _by_query(
    queries: Iterable[str],
    key: str,
    title: str,
    caption: str,
    read: Callable[[str], Iterable[Point]],
    top: float | None = None,
) -> Plot:
    series = {name: list(read(name)) for name in queries}
    return over_time(key, title, caption, series, Palette(queries), top=top)


def _cores(samples: list[FleetSample]) -> Plot:
    series = {name: list(_used(samples, name)) for name in WORKERS}
    return over_time("cpu", "Cores used by each worker", "Of one.", series, Palette(WORKERS))


def over_time(
    key: str,
    title: str,
    caption: str,
    series: Series,
    palette: Palette,
    *,
    top: float | None = None,
    along: str = "seconds",
) -> Plot:
    """Plot one line for each name."""

    def paint(axes: Axes) -> None:
        for name, points in series.items():
            if points:
                axes.plot(*zip(*points, strict=True), color=palette[name].colour)
        axes.set_ylim(0, top)

    return plot(key, title, caption, paint, x=along, legend=palette.legend(series))


def _lags(run: QualityRun) -> list[Point]:
    return [(at_s, lag) for at_s, lag in run["queries"]["knn"]["lags"]]


def _parts(run: QualityRun) -> list[Point]:
    return [(at, kept / max(seen, 1)) for at, _, seen, kept in run["queries"]["knn"]["batches"]]


def _rows(
    samples: list[FleetSample], name: str, key: Literal["desired", "lag_s", "rate"]
) -> Iterable[Point]:
    for sample in samples:
        for row in sample["queries"]:
            if row["query"] == name and (value := row[key]) is not None:
                yield sample["at_s"], value


def _delivered(
    samples: list[FleetSample], name: str, queries: dict[str, QueryFile]
) -> Iterable[Point]:
    for sample in samples:
        rows = {row["query"]: row for row in sample["queries"]}
        found = delivered(name, queries, rows) if name in rows else None
        if found is not None:
            yield sample["at_s"], found


def _used(samples: list[FleetSample], worker: str) -> Iterable[Point]:
    for sample in samples:
        found = sample["workers"].get(worker)
        if found is not None and found["used"] is not None:
            yield sample["at_s"], found["used"]
