"""Shapes that several plots share."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from slackwater.report.drawing import INK
from slackwater.report.palette import Palette
from slackwater.statistics.intervals import Interval

LABEL_LENGTH = 26


def bars_height_in(rows: int) -> float:
    """Inches that a chart of so many bars needs."""
    return 0.75 + 0.36 * rows


def shortened(name: str) -> str:
    """A name that leaves room for the bars; both ends of ``module:Class`` matter.

    >>> shortened("klink"), shortened("a_very_long_module.of_mine:MyOwnPolicy")
    ('klink', 'a_very_long_…e:MyOwnPolicy')
    """
    if len(name) <= LABEL_LENGTH:
        return name
    half = (LABEL_LENGTH - 1) // 2
    return f"{name[:half]}…{name[-(LABEL_LENGTH - 1 - half) :]}"


def reach(intervals: Sequence[Interval]) -> list[list[float]]:
    """Lengths of error bars downwards and upwards; ``nan`` draws none.

    >>> reach([Interval(2.0, 1.5, 3.0)])
    [[0.5], [1.0]]
    """
    return [
        [interval.estimate - interval.low for interval in intervals],
        [interval.high - interval.estimate for interval in intervals],
    ]


def paint_bars(
    axes: Axes,
    palette: Palette,
    figures: Mapping[str, Interval],
    pale: Mapping[str, Interval] | None = None,
    form: str = ".2f",
) -> None:
    """Horizontal bars with intervals and their figures, the first name on top.

    Parameters
    ----------
    figures
        By name of the palette.
    pale
        A second figure of each name, below the first in a paler tone.
    form
        How the figures are written.
    """
    names = list(figures)
    series = [(figures, 1.0)] if pale is None else [(figures, 1.0), (pale, 0.45)]
    thick = 0.7 / len(series)
    ends = []
    for place, (values, strength) in enumerate(series):
        offset = (place - (len(series) - 1) / 2) * thick
        for row, name in enumerate(names):
            interval = values[name]
            colour = palette[name].colour
            spot = row + offset
            axes.barh(spot, interval.estimate, thick * 0.92, color=colour, alpha=strength)
            if interval.known:
                axes.errorbar(
                    interval.estimate,
                    spot,
                    xerr=reach([interval]),
                    color=INK,
                    linewidth=1.0,
                    capsize=2.0,
                )
            end = interval.high if interval.known else interval.estimate
            ends.append(end)
            axes.annotate(
                format(interval.estimate, form),
                (end, spot),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7.5,
            )
    axes.set_yticks(range(len(names)), [shortened(name) for name in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    top = max((end for end in ends if math.isfinite(end)), default=0.0)
    axes.set_xlim(0, top * 1.15 if top > 0 else 1.0)  # room for the figure behind a bar


def from_zero(axes: Axes) -> None:
    """Let the upright axis begin at zero, with a little room above the highest point."""
    top = axes.get_ylim()[1]
    axes.set_ylim(0, top * 1.05 if top > 0 else 1.0)


def paint_lines(
    axes: Axes, palette: Palette, series: Mapping[str, Mapping[float, Interval]]
) -> None:
    """Lines with intervals.

    Parameters
    ----------
    series
        By name of the palette, then by place on the axis.
    """
    for name, points in series.items():
        look = palette[name]
        places = sorted(points)
        intervals = [points[place] for place in places]
        line = axes.errorbar(
            places,
            [interval.estimate for interval in intervals],
            yerr=reach(intervals),
            color=look.colour,
            marker=look.marker,
            capsize=2.5,
            elinewidth=1.0,
        )
        if look.dash:
            line.lines[0].set_dashes(look.dash)
