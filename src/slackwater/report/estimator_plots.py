"""How well estimators foresee the next sweeping watermark."""

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from slackwater.report.drawing import INK, draw
from slackwater.report.estimator import EstimatorRow
from slackwater.report.painters import from_zero, paint_lines
from slackwater.report.palette import Palette
from slackwater.report.plot import Plot
from slackwater.statistics.intervals import Interval

PANEL_HEIGHT_IN = 2.2


def coverage(rows: Sequence[EstimatorRow]) -> Plot | None:
    """How often the watermark came within the interval."""
    return _panels(
        rows,
        key="coverage",
        title="Estimators: coverage",
        caption="Share of watermarks within the stated interval, against the confidence asked for; "
        "95 % binomial intervals. On the dotted line is best.",
        label="coverage, %",
        figure=_coverage_percent,
        diagonal=True,
    )


def width(rows: Sequence[EstimatorRow]) -> Plot | None:
    """How wide the intervals are."""
    return _panels(
        rows,
        key="width",
        title="Estimators: width of the interval",
        caption="Mean width against the confidence asked for. Narrower is better, at equal "
        "coverage only.",
        label="width, ms",
        figure=_width_ms,
    )


def _coverage_percent(row: EstimatorRow) -> Interval | None:
    return Interval(*(100 * value for value in row.coverage)) if row.coverage else None


def _width_ms(row: EstimatorRow) -> Interval | None:
    if row.width_s is None:
        return None
    return Interval(1000 * row.width_s, float("nan"), float("nan"))


def _panels(
    rows: Sequence[EstimatorRow],
    *,
    key: str,
    title: str,
    caption: str,
    label: str,
    figure: Callable[[EstimatorRow], Interval | None],
    diagonal: bool = False,
) -> Plot | None:
    """One panel for each distribution of delays, below each other."""
    palette = Palette(row.estimator for row in rows)
    panels: dict[str, dict[str, dict[float, Interval]]] = {}
    for row in rows:
        if interval := figure(row):
            points = panels.setdefault(row.delays, {}).setdefault(row.estimator, {})
            points[100 * row.confidence] = interval
    if not panels:
        return None

    def paint(canvas: Figure) -> None:
        grid = canvas.subplots(len(panels), 1, sharex=True, squeeze=False)
        for axes, (delays, series) in zip(grid[:, 0], panels.items(), strict=True):
            paint_lines(axes, palette, series)
            places = [place for points in series.values() for place in points]
            if diagonal:
                ends = [min(places), max(places)]
                axes.plot(ends, ends, ":", color=INK, linewidth=1.0, zorder=5)
            else:
                from_zero(axes)
            axes.set_title(delays, fontsize=9, loc="left")
            axes.set_ylabel(label)
        grid[-1, 0].set_xlabel("confidence, %")

    shown = {estimator for series in panels.values() for estimator in series}
    return Plot(
        key=key,
        title=title,
        caption=caption,
        svg=draw(key, paint, 0.6 + PANEL_HEIGHT_IN * len(panels)),
        legend=tuple((name, palette[name]) for name in palette.names if name in shown),
    )
