"""The page of a comparison of samplers: the thesis's plots."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from slackwater.report.drawing import Plot, bars_plot, plot
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
    return bars_plot(
        *_texts("latency", group, "Mean latency", arms),
        palette,
        {name: mean_interval([arm.latencies_s]) for name, arm in arms.items()},
        {name: mean_interval([arm.waits_s]) for name, arm in arms.items()},
        x="mean latency, s (paler: waiting)",
        legend=palette.legend(arms),
    )


def _distribution(group: tuple[str, ...], arms: dict[str, Figures], palette: Palette) -> Plot:
    def paint(axes: Axes) -> None:
        for name, arm in arms.items():
            values = np.sort(arm.latencies_s)
            shares = np.arange(1, len(values) + 1) / len(values)
            axes.step(values, shares, color=palette[name].colour, where="post")
        axes.set_xlim(left=0)

    texts, legend = _texts("cdf", group, "Distribution of latencies", arms), palette.legend(arms)
    return plot(*texts, paint, x="latency, s", y="share of windows", legend=legend)


def _errors(
    group: tuple[str, ...], arms: dict[str, Figures], palette: Palette, error: float
) -> Plot:
    def paint(axes: Axes) -> None:
        for name, arm in arms.items():
            values = 100 * np.sort([each for each in arm.errors if np.isfinite(each)])
            shares = np.arange(1, len(values) + 1) / max(len(arm.errors), 1)
            axes.step(values, shares, color=palette[name].colour, where="post")
        axes.axvline(100 * error, color="0.5", linewidth=1.0)
        axes.set_xlim(0, 300 * error)

    return plot(
        *_texts("errors", group, "Distribution of errors", arms),
        paint,
        x="error, % (the line: what is promised)",
        y="share of result rows",
        legend=palette.legend(arms),
    )


def _texts(
    kind: str, group: tuple[str, ...], title: str, arms: dict[str, Figures]
) -> tuple[str, str, str]:
    """Return key, title and caption of a plot."""
    key = "-".join((kind, *group)).replace(":", "-").replace(" ", "")
    windows = sum(len(arm.latencies_s) for arm in arms.values())
    return key, f"{title}: {_name(group)}", f"{windows} windows in all."
