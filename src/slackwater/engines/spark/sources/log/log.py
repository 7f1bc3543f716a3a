"""What a source needs to know of a log and to ask of it."""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Position = Any  # between two rows of a stream, as JSON; what is in it is the log's own business
Positions = dict[str, Position]  # by the stream's name


class Rows(Protocol):
    """Some rows of one stream, in order, made into columns when asked for."""

    @property
    def numbers(self) -> Ints:
        """Tell the rows of a stream apart, the same whenever they are read."""

    @property
    def arrival_us(self) -> Ints | None:
        """When the server took them; None: it does not tell."""

    def column(self, name: str) -> pa.Array:
        """One column of all rows."""

    def batch(self, kept: NDArray[np.intp] | None) -> pa.RecordBatch:
        """All columns of some rows; None: of all rows."""


class Stream(Protocol):
    """What a server held of one stream at one moment."""

    @property
    def earliest(self) -> Position:
        """Before the first row that is still there."""

    @property
    def latest(self) -> Position:
        """After the last row."""

    def missing_after(self, position: Position) -> int | None:
        """How many rows after ``position`` are no longer there; None: unknown, but some."""

    def resume(self, position: Position) -> Position:
        """Where to go on from ``position`` when rows after it are missing."""


class Log(Protocol):
    """Streams on a server. Methods raise ServerAway while it does not answer, but for ``read``."""

    def look(self) -> dict[str, Stream]:
        """What there is, by the stream's name."""

    def ordinal(self, position: Position) -> int:
        """Rows before a position, so that differences count rows."""

    def arrived_us(self, position: Position) -> int | None:
        """When the row before a position arrived; None: the position does not tell."""

    def advance(self, name: str, position: Position, rows: int) -> Position:
        """The position ``rows`` rows further on, all of which are there."""

    def read(self, name: str, first: Position, last: Position) -> Iterator[Rows]:
        """The rows between two positions; waits for a server that is away.

        Raises DataGone when some are missing.
        """
