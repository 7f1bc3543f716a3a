"""Tables of figures as Markdown."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from slackwater.statistics.intervals import Interval

Row = dict[str, Any]


def markdown_table(heads: Sequence[str], body: Iterable[Sequence[str]], names: int) -> str:
    """Write a table; the first columns hold names, the others figures.

    >>> print(markdown_table(["arm", "s"], [["`a`", "1.00"]], names=1))
    | arm | s |
    |---|---:|
    | `a` | 1.00 |
    """
    ruler = ["---"] * names + ["---:"] * (len(heads) - names)
    texts = [
        f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in line)}|" for line in (heads, *body)
    ]
    return "\n".join([texts[0], f"|{'|'.join(ruler)}|", *texts[1:]])


def rounded(interval: Interval) -> list[float | None]:
    """Return an interval as result files have it: what the data cannot tell is none.

    >>> rounded(Interval(1.23456, float("nan"), float("nan")))
    [1.235, None, None]
    """
    return [round(value, 3) if math.isfinite(value) else None for value in interval]


def seconds(figure: Sequence[float | None] | float | None) -> str:
    """Write a figure, with its interval if it has one.

    >>> seconds([1.234, 1.1, 1.4]), seconds([1.234, None, None]), seconds(0.5), seconds(None)
    ('1.23 (1.10–1.40)', '1.23', '0.50', '')
    """
    if figure is None or isinstance(figure, int | float):
        return "" if figure is None else f"{figure:.2f}"
    middle, low, high = figure
    if middle is None:
        return ""
    known = low is not None and high is not None
    return f"{middle:.2f} ({low:.2f}–{high:.2f})" if known else f"{middle:.2f}"


def whole(figure: float | None) -> str:
    """Write a figure that needs no decimals.

    >>> whole(93.33), whole(None)
    ('93', '')
    """
    return "" if figure is None else f"{figure:.0f}"
