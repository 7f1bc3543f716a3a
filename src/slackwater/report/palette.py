"""One colour, dash and marker for each name, the same in all plots and tables of a page."""

from collections.abc import Iterable
from typing import NamedTuple

# Middle tones: at least 3 to 1 against both backgrounds of the page.
COLOURS = (
    "#3a80d2", "#d5681a", "#2f9455", "#d6494d", "#9763d6",
    "#1c8f9c", "#cf4f9d", "#87831f", "#a66f4a", "#7c8590",
)  # fmt: skip
# Dashes and markers help where colours are not told apart, and outlast the colours.
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5), (6, 2, 1.5, 2))
MARKERS = "osD^vPX"


class Look(NamedTuple):
    """How one name is drawn."""

    colour: str
    dash: tuple[float, ...]
    marker: str


class Palette:
    """Looks by name.

    Parameters
    ----------
    names
        In the order in which they take their colours; a name may come twice.

    >>> palette = Palette(["spark", "klink", "spark"])
    >>> palette.names, palette["klink"].colour
    (['spark', 'klink'], '#d5681a')
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(dict.fromkeys(names))
        self._looks = {
            name: Look(
                COLOURS[place % len(COLOURS)],
                DASHES[place % len(DASHES)],
                MARKERS[place % len(MARKERS)],
            )
            for place, name in enumerate(self.names)
        }

    def __getitem__(self, name: str) -> Look:
        return self._looks[name]

    def legend(self, names: Iterable[str]) -> tuple[tuple[str, Look], ...]:
        """Return these names with their looks, for below a plot."""
        return tuple((name, self[name]) for name in names)


def swatch(look: Look) -> str:
    """Draw a short piece of a line, as in the plots, in HTML.

    >>> 'stroke="#123456"' in swatch(Look("#123456", (5, 2), "o"))
    True
    """
    dash = f' stroke-dasharray="{" ".join(f"{2 * part:g}" for part in look.dash)}"'
    return (
        '<svg class="swatch" viewBox="0 0 28 8" aria-hidden="true"><line x1="0" y1="4" x2="28" '
        f'y2="4" stroke="{look.colour}" stroke-width="4"{dash if look.dash else ""}/></svg>'
    )
