"""What a source needs to know of a log and to ask of it.

A *log* keeps streams of rows with positions, on a server or in files, and reads them back.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, get_args

import pyarrow as pa

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.sources.base import Ints, Rows, SourceOptions

Start = Literal["earliest", "latest"]
Timestamps = Literal["iso", "s", "ms", "us"]
Malformed = Literal["fail", "null"]

Position = Any  # between two rows of a stream, as JSON; what is in it is the log's own business
Positions = dict[str, Position]  # by the stream's name

RETRY_EVERY_S = 0.1  # while a server is away
NEWEST_ROWS = 32  # of each stream that are looked at: the last need not be the newest event

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class LogOptions(SourceOptions):
    """What sources over logs can be asked for besides."""

    start: Start = "earliest"  # where a query without a checkpoint begins
    event_time: str | None = None  # column with the event time
    timestamps: Timestamps = "iso"  # how timestamps are written: as text, or in units since 1970
    malformed: Malformed = "fail"  # what a value that does not fit its column's type becomes
    retry_s: float = 60.0  # how long a server may be away
    fail_on_data_loss: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, kind in (("start", Start), ("timestamps", Timestamps), ("malformed", Malformed)):
            if getattr(self, name) not in get_args(kind):
                known = ", ".join(get_args(kind))
                raise UsageError(f"{name} is {getattr(self, name)!r}; it may be one of {known}")
        if self.retry_s < 0:
            raise UsageError(f"retry_s must not be negative, it is {self.retry_s}")
        if self.sampled and self.event_time is None:
            raise UsageError("a sampled source must know the event time: name its column")

    @property
    def server(self) -> str:
        """Its name in messages."""
        raise NotImplementedError


class LogRows(Rows, Protocol):
    """Some rows of one stream of a log."""

    @property
    def arrival_us(self) -> Ints | None:
        """When the server took them; None: it does not tell."""

    def column(self, name: str) -> pa.Array:
        """Make one column of all rows."""


class Stream(Protocol):
    """What a server held of one stream at one moment."""

    @property
    def earliest(self) -> Position:
        """Before the first row that is still there."""

    @property
    def latest(self) -> Position:
        """After the last row."""

    def missing_after(self, position: Position) -> int | None:
        """Count rows after ``position`` that are no longer there; None: unknown, but some."""

    def resume(self, position: Position) -> Position:
        """Return where to go on from ``position`` when rows after it are missing."""


class Log(Protocol):
    """Streams on a server. Methods raise ServerAway while it does not answer, but for ``read``."""

    def look(self) -> dict[str, Stream]:
        """Return what there is, by the stream's name."""

    def ordinal(self, position: Position) -> int:
        """Count the rows before a position, so that differences count rows."""

    def arrived_us(self, position: Position) -> int | None:
        """Return when the row before a position arrived; None: the position does not tell."""

    def advance(self, name: str, position: Position, rows: int) -> Position:
        """Return the position ``rows`` rows further on, all of which are there."""

    def read(self, name: str, first: Position, last: Position) -> Iterator[LogRows]:
        """Return the rows between two positions; waits for a server that is away.

        Raises DataGone when some are missing.
        """

    def newest(self, column: str, after: Positions) -> Iterator[pa.Array | pa.ChunkedArray]:
        """Return a column of the newest rows after these positions, at least of the last one.

        Streams that are not named, or that have nothing new, give none.
        """


class ServerAway(SlackwaterError):
    """The server does not answer; it may come back."""


class DataGone(SlackwaterError):
    """Rows that should be read are no longer there."""


def data_gone(name: str, what: str) -> DataGone:
    """Say that rows were removed before they were read."""
    return DataGone(
        f"{what} of {name} were removed before they were read (trimmed, deleted or past their "
        "retention): set fail_on_data_loss=False to go on without them"
    )


class Outage:
    """Knows for how long a server has been away."""

    def __init__(self, server: str, limit_s: float) -> None:
        self._server = server
        self._limit_s = limit_s
        self._since_s: float | None = None

    def note(self, error: ServerAway) -> None:
        """Pause after a failed try, or give up when the server has been away for too long."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s >= self._limit_s:
            raise SlackwaterError(
                f"{self._server} did not answer for {self._limit_s:g} s ({error}): start it and "
                "restart the query from its checkpoint, or raise retry_s"
            ) from None
        time.sleep(RETRY_EVERY_S)

    def over(self) -> None:
        """Note that the server has answered."""
        self._since_s = None

    def outlast(self, action: Callable[[], T]) -> T:
        """Try ``action`` until it succeeds."""
        while True:
            try:
                result = action()
            except ServerAway as error:
                self.note(error)
            else:
                self.over()
                return result
