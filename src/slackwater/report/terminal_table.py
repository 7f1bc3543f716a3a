"""A table for terminals that leaves columns out rather than break words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

SENTENCE = 24  # characters of a column of sentences, at least: they wrap between words
NAME = 24  # and of a column of names, which fold
EDGES = 3  # characters that a column takes besides its text


@dataclass(frozen=True)
class TerminalTable:
    """Columns of text: as many as the terminal is wide, the most important ones.

    Parameters
    ----------
    columns
        Cells by heading. The first one holds names, and always stands.
    important
        Headings, the most important first; those that it does not name come last.
    left
        Headings whose cells begin at the left.
    sentences
        Those of them whose cells are sentences.
    notes
        Lines below.

    Examples
    --------
    >>> table = TerminalTable("fleet ads", {"query": ["a"], "rows": ["3"], "why": ["no slot free"]},
    ...     important=("why",), left=frozenset({"query"}), sentences=frozenset({"why"}))
    >>> table.fitting(26)
    ['query', 'why']
    >>> table.fitting(80)
    ['query', 'rows', 'why']
    """

    title: str
    columns: Mapping[str, Sequence[str]]
    important: Sequence[str] = ()
    left: frozenset[str] = frozenset()
    sentences: frozenset[str] = frozenset()
    notes: Sequence[str] = ()

    def fitting(self, width: int) -> list[str]:
        """Return the headings that such a terminal has room for, in their own order."""
        first, *others = self.columns
        ranks = {name: rank for rank, name in enumerate(self.important)}
        room = width - 1 - self._width(first)
        chosen = {first}
        for name in sorted(others, key=lambda name: ranks.get(name, len(ranks))):
            if (needs := self._width(name)) <= room:
                chosen.add(name)
                room -= needs
        return [name for name in self.columns if name in chosen]

    def _width(self, name: str) -> int:
        """Return how wide a column must be."""
        longest = max((len(cell) for cell in self.columns[name]), default=0)
        if name in self.sentences:
            longest = min(longest, SENTENCE)
        elif name in self.left:
            longest = min(longest, NAME)
        return EDGES + max(longest, *(len(word) for word in name.split()))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self.fitting(options.max_width)
        hidden = [name for name in self.columns if name not in shown]
        notes = list(self.notes)
        if hidden:
            notes.append(f"no room for: {', '.join(hidden)}")
        table = Table(title=Text(self.title), title_justify="left", caption_justify="left")
        table.caption = Text("\n".join(notes)) if notes else None
        for name in shown:
            words = name in self.sentences
            table.add_column(
                name,
                justify="left" if name in self.left or words else "right",
                overflow="fold",
                min_width=None if words else self._width(name) - EDGES,
            )
        for row in zip(*(self.columns[name] for name in shown), strict=True):
            table.add_row(*map(Text, row))  # what others have written may look like markup
        yield table
