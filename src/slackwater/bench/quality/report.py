"""The page of an overload: lag and accuracy over time."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from slackwater.bench.quality.overload import CALM_S, best_fixed, figures
from slackwater.bench.report.drawing import draw
from slackwater.bench.report.page import assemble, write_page
from slackwater.bench.report.palette import Palette
from slackwater.bench.report.plot import Plot


def write_overload_report(result: dict[str, Any], folder: Path) -> Path:
    """Write ``index.html``."""
    best = best_fixed(result)
    arms = [arm for arm in ("plain", best, "slackwater") if arm is not None]
    palette = Palette(arms)
    text = assemble(
        title="More input than the machine can take",
        lines=[
            f"{result['rate']} rows/s where {result['capacity']:.0f} can be processed, after "
            f"{CALM_S:g} s of a tenth of that.",
            "Lag is how long the oldest row had waited that no micro-batch had taken.",
        ],
        plots=[_lags(result, arms, palette), _accuracies(result, arms, palette)],
        settings={"seconds": result["seconds"]},
    )
    return write_page(text, folder)


def _lags(result: dict[str, Any], arms: list[str], palette: Palette) -> Plot:
    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        for arm in arms:
            lags = result["runs"][arm]["queries"]["knn"]["lags"]
            times, values = zip(*lags, strict=True)
            axes.plot(times, values, color=palette[arm].colour)
        axes.set_xlabel("seconds")
        axes.set_ylabel("lag, s")

    shown = ", ".join(f"{arm} {figures(result['runs'][arm])['lag_s']:.1f} s" for arm in arms)
    return _plot("lag", "Lag", f"Largest after settling: {shown}.", arms, palette, paint)


def _accuracies(result: dict[str, Any], arms: list[str], palette: Palette) -> Plot:
    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        for arm in arms:
            batches = result["runs"][arm]["queries"]["knn"]["batches"]
            parts = [kept / max(seen, 1) for _, _, seen, kept in batches]
            axes.plot([each[0] for each in batches], parts, color=palette[arm].colour)
        axes.set_ylim(0, 1.05)
        axes.set_xlabel("seconds")
        axes.set_ylabel("accuracy")

    shown = ", ".join(f"{arm} {figures(result['runs'][arm])['accuracy']:.0%}" for arm in arms)
    return _plot("accuracy", "Accuracy", f"After settling: {shown}.", arms, palette, paint)


def _plot(
    key: str, title: str, caption: str, arms: list[str], palette: Palette, paint: Any
) -> Plot:
    legend = tuple((arm, palette[arm]) for arm in arms)
    return Plot(key, title, caption, draw(key, paint), legend)
