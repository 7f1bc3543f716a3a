"""Plots: figures of matplotlib as SVG inside a page, and the shapes that several of them share."""

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slackwater.report.palette import Look, Palette
from slackwater.statistics.intervals import Interval

WIDTH_IN = 4.6  # near the width of a phone, where text then keeps its size
HEIGHT_IN = 3.0
LABEL_LENGTH = 26  # of a name beside a bar

# Stands for the page's text colour, which matplotlib has no name for.
INK = "#010203"

SETTINGS: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.formatter.use_mathtext": False,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.size": 9.0,
    "grid.alpha": 0.15,
    "grid.color": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.hashsalt": "slackwater",  # ids are random without
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's font
    "text.color": INK,
    "text.parse_math": False,  # a policy's name may hold a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
}


@dataclass(frozen=True, slots=True)
class Plot:
    """What the page shows of it."""

    key: str  # unique on the page
    title: str
    caption: str  # one line: what it shows, and what better looks like
    svg: str
    legend: tuple[tuple[str, Look], ...] = ()  # empty if names stand on an axis


def draw(key: str, paint: Callable[[Figure], None], height_in: float = HEIGHT_IN) -> str:
    """Return the SVG element that ``paint`` makes of an empty figure.

    Parameters
    ----------
    key
        Unique on the page; keeps the ids of one plot apart from those of the others.
    paint
        Draws into the figure.
    height_in
        Inches; the width is the same for all.

    >>> svg = draw("demo", lambda figure: None)
    >>> svg.startswith("<svg viewBox="), "http" in svg
    (True, False)
    """
    out = io.StringIO()
    # The same data must give the same file: no date, no settings of the user's own.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        paint(figure)
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _inline(out.getvalue(), key)


def plot(
    key: str,
    title: str,
    caption: str,
    paint: Callable[[Axes], None],
    *,
    x: str,
    y: str = "",
    legend: tuple[tuple[str, Look], ...] = (),
    height_in: float = HEIGHT_IN,
) -> Plot:
    """Make a plot of what ``paint`` draws on one pair of axes, with these labels."""

    def whole(figure: Figure) -> None:
        axes = figure.add_subplot()
        paint(axes)
        axes.set_xlabel(x)
        axes.set_ylabel(y)

    return Plot(key, title, caption, draw(key, whole, height_in), legend)


def bars_plot(
    key: str,
    title: str,
    caption: str,
    palette: Palette,
    figures: Mapping[str, Interval],
    pale: Mapping[str, Interval] | None = None,
    *,
    x: str,
    form: str = ".2f",
    legend: tuple[tuple[str, Look], ...] = (),
) -> Plot:
    """Make a plot of horizontal bars, as :func:`paint_bars` draws them."""
    height_in = bars_height_in(len(figures) * (1 if pale is None else 2))
    paint = partial(paint_bars, palette=palette, figures=figures, pale=pale, form=form)
    return plot(key, title, caption, paint, x=x, legend=legend, height_in=height_in)


def lines_plot(
    key: str,
    title: str,
    caption: str,
    palette: Palette,
    series: Mapping[str, Mapping[float, Interval]],
    *,
    x: str,
    y: str,
    ticks: Sequence[float] | None = None,
) -> Plot:
    """Make a plot of lines with intervals, from zero on; ``ticks`` are the places on the axis."""

    def paint(axes: Axes) -> None:
        paint_lines(axes, palette, series)
        if ticks is not None:
            axes.set_xticks(ticks)
        from_zero(axes)

    return plot(key, title, caption, paint, x=x, y=y, legend=palette.legend(series))


def _inline(document: str, key: str) -> str:
    """Return the element alone, without what only a file of its own needs."""
    box = re.search(r'viewBox="([^"]+)"', document)
    body = re.search(r"<svg\b[^>]*>(.*)</svg>", document, re.DOTALL)
    assert box is not None
    assert body is not None
    # The style is for all elements, so on a page for the page's too; the page has its own.
    inner = re.sub(r"<(metadata|style)\b.*?</\1>|<!--.*?-->", "", body[1], flags=re.DOTALL)
    inner = re.sub(r'\bid="', f'id="{key}-', inner)
    inner = re.sub(r'\b(?:xlink:)?href="#', f'href="#{key}-', inner)
    inner = inner.replace("url(#", f"url(#{key}-").replace(INK, "currentColor")
    return f'<svg viewBox="{box[1]}">{inner}</svg>'


def bars_height_in(rows: int) -> float:
    """Return inches that a chart of so many bars needs."""
    return 0.75 + 0.36 * rows


def shortened(name: str) -> str:
    """Return a name that leaves room for the bars; both ends of ``module:Class`` matter.

    >>> shortened("klink"), shortened("a_very_long_module.of_mine:MyOwnPolicy")
    ('klink', 'a_very_long_…e:MyOwnPolicy')
    """
    if len(name) <= LABEL_LENGTH:
        return name
    half = (LABEL_LENGTH - 1) // 2
    return f"{name[:half]}…{name[-(LABEL_LENGTH - 1 - half) :]}"


def reach(intervals: Sequence[Interval]) -> list[list[float]]:
    """Return lengths of error bars downwards and upwards; ``nan`` draws none.

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
    """Draw horizontal bars with intervals and their figures, the first name on top.

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
            _write_beside(axes, format(interval.estimate, form), (end, spot))
    axes.set_yticks(range(len(names)), [shortened(name) for name in names])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    top = max((end for end in ends if math.isfinite(end)), default=0.0)
    axes.set_xlim(0, top * 1.15 if top > 0 else 1.0)  # room for the figure behind a bar


def _write_beside(axes: Axes, text: str, end: tuple[float, float]) -> None:
    beside = {"xytext": (3, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(text, end, fontsize=7.5, **beside)  # type: ignore[arg-type]


def from_zero(axes: Axes) -> None:
    """Let the upright axis begin at zero, with a little room above the highest point."""
    top = axes.get_ylim()[1]
    axes.set_ylim(0, top * 1.05 if top > 0 else 1.0)


def paint_lines(
    axes: Axes, palette: Palette, series: Mapping[str, Mapping[float, Interval]]
) -> None:
    """Draw lines with intervals.

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
