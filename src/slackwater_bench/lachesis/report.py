"""The page of a run: the paper's plots."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from slackwater.report.drawing import Plot, bars_height_in, bars_plot, plot, shortened
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
    better = "More is better" if kind in ("in", "out") else "Less is better"
    return bars_plot(
        f"{engine}-{kind}".replace("_", "-"),
        f"{engine}: {title}",
        better + (f"; what {goal} is after." if goal else "."),
        palette,
        {arm.name: arm.interval(kind) for arm in arms},
        x=title,
        form=form,
    )


def _cpu(arms: Sequence[Arm], palette: Palette) -> Plot:
    nan = float("nan")
    shares = {arm.name: arm.machine_share for arm in arms}
    found = {
        name: Interval(100 * share, nan, nan) for name, share in shares.items() if share is not None
    }
    label = "% of the machine's CPU time"
    return bars_plot("cpu", "CPU of the middleware", "Less is better.", palette, found, x=label)


def _boxen(engine: str, arms: Sequence[Arm], palette: Palette) -> Plot:
    def paint(axes: Axes) -> None:
        for row, arm in enumerate(arms):
            paint_letter_values(axes, row, arm.sizes, palette[arm.name].colour)
        axes.set_yticks(range(len(arms)), [shortened(arm.name) for arm in arms])
        axes.invert_yaxis()

    return plot(
        f"{engine}-sizes",
        f"{engine}: sizes of queues",
        "Each box holds half of what is beyond the one inside it; the line is the median.",
        paint,
        x="rows in a queue",
        height_in=bars_height_in(2 * len(arms)),
    )


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
