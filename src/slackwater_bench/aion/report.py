"""The page of a comparison of samplers: the thesis's plots."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from slackwater.report.drawing import Plot, bars_height_in, draw, paint_bars
from slackwater.report.page import assemble, write_page
from slackwater.report.palette import Palette
from slackwater.statistics.intervals import mean_interval
from slackwater_bench.aion.figures import AionResult, Figures, Key, figures


def write_aion_report(result: AionResult, error: float, folder: Path) -> Path:
    """Write ``index.html``."""
    found = figures(result)
    palette = Palette(key[3] for key in found)
    plots = []
    for group in dict.fromkeys(key[:3] for key in found):
        arms = {key[3]: arm for key, arm in found.items() if key[:3] == group}
        plots += [
            _latency(group, arms, palette),
            _distribution(group, arms, palette),
            _errors(group, arms, palette, error),
        ]
    text = assemble(
        title="Approximate results: how soon, and how far off",
        lines=[
            "Latency runs from the end of a window to its result. The paler bar is the part in "
            "which the window was kept open for late rows.",
            f"Errors are those of result rows that promise at most {error:.0%}.",
        ],
        plots=plots,
        settings=result["runs"][0].get("trial", {}) if result["runs"] else {},
    )
    return write_page(text, folder)


def _name(group: Key | tuple[str, ...]) -> str:
    workload, setting, rate = group[:3]
    return f"{workload}, {setting}, {rate} events/s"


def _latency(group: tuple[str, ...], arms: dict[str, Figures], palette: Palette) -> Plot:
    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        paint_bars(
            axes,
            palette,
            {name: mean_interval([arm.latencies_s]) for name, arm in arms.items()},
            {name: mean_interval([arm.waits_s]) for name, arm in arms.items()},
        )
        axes.set_xlabel("mean latency, s (paler: waiting)")

    return _plot("latency", group, "Mean latency", arms, palette, paint, 2 * len(arms))


def _distribution(group: tuple[str, ...], arms: dict[str, Figures], palette: Palette) -> Plot:
    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        for name, arm in arms.items():
            values = np.sort(arm.latencies_s)
            shares = np.arange(1, len(values) + 1) / len(values)
            axes.step(values, shares, color=palette[name].colour, where="post")
        axes.set_xlim(left=0)
        axes.set_xlabel("latency, s")
        axes.set_ylabel("share of windows")

    return _plot("cdf", group, "Distribution of latencies", arms, palette, paint)


def _errors(
    group: tuple[str, ...], arms: dict[str, Figures], palette: Palette, error: float
) -> Plot:
    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        for name, arm in arms.items():
            values = 100 * np.sort([each for each in arm.errors if np.isfinite(each)])
            shares = np.arange(1, len(values) + 1) / max(len(arm.errors), 1)
            axes.step(values, shares, color=palette[name].colour, where="post")
        axes.axvline(100 * error, color="0.5", linewidth=1.0)
        axes.set_xlim(0, 300 * error)
        axes.set_xlabel("error, % (the line: what is promised)")
        axes.set_ylabel("share of result rows")

    return _plot("errors", group, "Distribution of errors", arms, palette, paint)


def _plot(
    kind: str,
    group: tuple[str, ...],
    title: str,
    arms: dict[str, Figures],
    palette: Palette,
    paint: Any,
    bars: int | None = None,
) -> Plot:
    key = "-".join((kind, *group)).replace(":", "-").replace(" ", "")
    svg = draw(key, paint) if bars is None else draw(key, paint, bars_height_in(bars))
    windows = sum(len(arm.latencies_s) for arm in arms.values())
    return Plot(
        key=key,
        title=f"{title}: {_name(group)}",
        caption=f"{windows} windows in all.",
        svg=svg,
        legend=palette.legend(arms),
    )
