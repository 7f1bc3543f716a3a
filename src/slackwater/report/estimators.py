"""How well estimators foresee the next sweeping watermark: rows of a result, and their plots."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from matplotlib.figure import Figure

from slackwater.report.drawing import INK, Plot, draw, from_zero, paint_lines
from slackwater.report.palette import Palette
from slackwater.report.runs import entries, mapping, number
from slackwater.statistics.intervals import Interval, binomial_interval

PANEL_HEIGHT_IN = 2.2


@dataclass(frozen=True, slots=True)
class EstimatorRow:
    """How an estimator did at one confidence under one distribution of delays."""

    estimator: str
    delays: str
    confidence: float  # between 0 and 1
    coverage: Interval | None
    width_s: float | None

    @classmethod
    def read(cls, raw: dict[str, Any]) -> Self | None:
        """Read a row; nothing without a confidence to place it at.

        >>> row = EstimatorRow.read({"estimator": "klink", "confidence": 95, "coverage": 0.9})
        >>> row.confidence, row.coverage.estimate
        (0.95, 0.9)
        """
        confidence = number(raw.get("confidence"))
        if confidence is None:
            return None
        return cls(
            estimator=str(raw.get("estimator", "?")),
            delays=str(raw.get("delays", "")),
            confidence=confidence / 100 if confidence > 1 else confidence,
            coverage=_coverage(raw),
            width_s=number(raw.get("width_s")),
        )


def estimator_rows(result: dict[str, Any]) -> list[EstimatorRow]:
    """Return the rows of a result.

    >>> estimator_rows({})
    []
    """
    found = map(EstimatorRow.read, entries(mapping(result.get("estimators")).get("rows")))
    return [row for row in found if row is not None]


def _coverage(raw: dict[str, Any]) -> Interval | None:
    coverage, epochs = number(raw.get("coverage")), number(raw.get("epochs"))
    low, high = number(raw.get("coverage_low")), number(raw.get("coverage_high"))
    if coverage is None or not 0 <= coverage <= 1:
        return None
    if low is None or high is None or not low <= coverage <= high:
        _, low, high = binomial_interval(coverage * (epochs or 0), int(epochs or 0))
    return Interval(coverage, low, high)


def coverage(rows: Sequence[EstimatorRow]) -> Plot | None:
    """Plot how often the watermark came within the interval."""
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
    """Plot how wide the intervals are."""
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
    """Plot one panel for each distribution of delays, below each other."""
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
        legend=palette.legend(name for name in palette.names if name in shown),
    )
