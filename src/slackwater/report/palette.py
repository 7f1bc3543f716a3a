"""One colour, dash and marker for each name, the same in all plots of a page."""

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
