"""Figures of matplotlib as SVG inside a page."""

import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib
from matplotlib.figure import Figure

WIDTH_IN = 4.6  # near the width of a phone, where text then keeps its size
HEIGHT_IN = 3.0

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


def draw(key: str, paint: Callable[[Figure], None], height_in: float = HEIGHT_IN) -> str:
    """The SVG element that ``paint`` makes of an empty figure.

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


def _inline(document: str, key: str) -> str:
    """The element alone, without what only a file of its own needs."""
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
