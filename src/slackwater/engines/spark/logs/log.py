"""What a source needs to know of a log and to ask of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Position = Any  # between two rows of a stream, as JSON; what is in it is the log's own business
Positions = dict[str, Position]  # by the stream's name


@dataclass(frozen=True)
class Rows:
    """Some rows of one stream, in order."""

    batch: pa.RecordBatch
    numbers: NDArray[np.int64]  # tell the rows of a stream apart, the same whenever they are read
    arrival_us: NDArray[np.int64] | None = None  # None: the server does not tell


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

    def advance(self, name: str, position: Position, rows: int) -> Position:
        """The position ``rows`` rows further on, all of which are there."""

    def read(self, name: str, first: Position, last: Position) -> Iterator[Rows]:
        """The rows between two positions; waits for a server that is away.

        Raises DataGone when some are missing.
        """
