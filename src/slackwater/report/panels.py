"""Pages of experiments whose plots come with their data: lines by name."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from slackwater.report.drawing import Plot, from_zero, paint_lines, plot
from slackwater.report.page import assemble, write_page
from slackwater.report.palette import Palette
from slackwater.report.table import grid
from slackwater.statistics.intervals import Interval

NAN = float("nan")
CROWDED = 30  # points of a line from which on markers would hide it


def write_panels(
    result: Mapping[str, Any], headings: Sequence[str], rows: Sequence[Sequence[str]], folder: Path
) -> Path:
    """Write ``index.html`` with the figures and the panels of a result of ``slackwater simulate``.

    Parameters
    ----------
    headings, rows
        The figures as texts.
    """
    palette = Palette(name for panel in result["panels"] for name in panel["series"])
    plots = [panel_plot(panel, palette, number) for number, panel in enumerate(result["panels"])]
    text = assemble(
        title=str(result["title"]),
        lines=[str(result["about"]), *result.get("notes", ())],
        plots=plots,
        figures=grid(headings, (_cells(row) for row in rows)),
        settings=dict(result["settings"]),
    )
    return write_page(text, folder)


def panel_plot(panel: Mapping[str, Any], palette: Palette, number: int) -> Plot:
    """Draw one plot."""
    lines = {
        name: {at: Interval(y, _or_nan(low), _or_nan(high)) for at, y, low, high in points}
        for name, points in panel["series"].items()
        if points
    }

    def paint(axes: Axes) -> None:
        for name, points in lines.items():
            if len(points) < CROWDED:
                paint_lines(axes, palette, {name: points})
                continue
            look = palette[name]
            places = sorted(points)
            heights = [points[place].estimate for place in places]
            (line,) = axes.plot(places, heights, color=look.colour)
            if look.dash:
                line.set_dashes(look.dash)
        from_zero(axes)

    return plot(
        f"panel-{number}",
        panel["title"],
        panel["caption"],
        paint,
        x=panel["x_label"],
        y=panel["y_label"],
        legend=palette.legend(lines),
    )


def _or_nan(value: float | None) -> float:
    return NAN if value is None else value


def _cells(row: Sequence[str]) -> str:
    return "".join(f"<td>{escape(text)}</td>" for text in row)
