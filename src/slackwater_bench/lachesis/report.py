"""The page of a run: the paper's plots."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slackwater.report.drawing import Plot, bars_height_in, draw, paint_bars, shortened
from slackwater.report.page import assemble, write_page
from slackwater.report.palette import Palette
from slackwater.statistics.intervals import Interval
from slackwater_bench.lachesis.figures import KINDS, Arm, LachesisResult, arms_of


def write_lachesis_report(result: LachesisResult, folder: Path) -> Path:
    """Write ``index.html``."""
    arms = arms_of(result)
    palette = Palette(arm.name for arm in arms)
    plots = []
    for engine in dict.fromkeys(arm.engine for arm in arms):
        mine = [arm for arm in arms if arm.engine == engine]
        plots += [_bars(engine, kind, mine, palette) for kind in KINDS]
        plots.append(_boxen(engine, mine, palette))
    plots.append(_cpu(arms, palette))
    text = assemble(
        title="Engines steered through the kernel",
        lines=[
            "All arms ran on the same engines and queries, in turns; os is the default.",
            "Bars are means with 95 % confidence intervals over rounds.",
        ],
        plots=plots,
        settings=result["settings"],
    )
    return write_page(text, folder)


def _bars(engine: str, kind: str, arms: Sequence[Arm], palette: Palette) -> Plot:
    title, form, goal = KINDS[kind]

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        paint_bars(axes, palette, {arm.name: arm.interval(kind) for arm in arms}, form=form)
        axes.set_xlabel(title)

    better = "more is better" if kind in ("in", "out") else "less is better"
    aim = f"; what {goal} is after" if goal else ""
    return _plot(f"{engine}-{kind}", f"{engine}: {title}", better + aim, paint, len(arms))


def _cpu(arms: Sequence[Arm], palette: Palette) -> Plot:
    shares = {arm.name: arm.machine_share for arm in arms if arm.machine_share is not None}

    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        figures = {
            name: Interval(100 * share, float("nan"), float("nan"))
            for name, share in shares.items()
        }
        paint_bars(axes, palette, figures)
        axes.set_xlabel("% of the machine's CPU time")

    return _plot("cpu", "CPU of the middleware", "less is better", paint, len(shares))


def _boxen(engine: str, arms: Sequence[Arm], palette: Palette) -> Plot:
    def paint(figure: Figure) -> None:
        axes = figure.add_subplot()
        for row, arm in enumerate(arms):
            paint_letter_values(axes, row, arm.sizes, palette[arm.name].colour)
        axes.set_yticks(range(len(arms)), [shortened(arm.name) for arm in arms])
        axes.invert_yaxis()
        axes.set_xlabel("rows in a queue")

    caption = "Each box holds half of what is beyond the one inside it; the line is the median."
    return _plot(f"{engine}-sizes", f"{engine}: sizes of queues", caption, paint, 2 * len(arms))


def letter_values(values: Sequence[float]) -> list[tuple[float, float]]:
    """Return pairs of quantiles, from the middle half outwards, while a dozen values are beyond.

    >>> letter_values(list(range(101)))
    [(25.0, 75.0), (12.5, 87.5)]
    """
    pairs, tail = [], 0.25
    while len(values) * tail >= 12:
        low, high = np.quantile(values, [tail, 1 - tail])
        pairs.append((float(low), float(high)))
        tail /= 2
    return pairs


def paint_letter_values(axes: Axes, row: int, values: Sequence[float], colour: str) -> None:
    """Draw a letter-value plot on one row (Hofmann, Wickham and Kafadar, 2017)."""
    if not values:
        return
    thick = 0.8
    for depth, (low, high) in enumerate(letter_values(values)):
        strength = 0.9 / (1 + 0.6 * depth)
        size = thick * 0.8**depth
        axes.barh(row, high - low, size, left=low, color=colour, alpha=strength, linewidth=0)
    middle = float(np.median(values))
    axes.plot([middle, middle], [row - thick / 2, row + thick / 2], color="0.5", linewidth=1.2)


def _plot(key: str, title: str, caption: str, paint: Callable[[Figure], None], rows: int) -> Plot:
    return Plot(
        key=key.replace("_", "-"),
        title=title,
        caption=caption[0].upper() + caption[1:].rstrip(".") + ".",
        svg=draw(key, paint, bars_height_in(rows)),
    )
