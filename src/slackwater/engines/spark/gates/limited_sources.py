"""Sources of Spark's whose next batch can be limited: in which unit, and what the user allows.

A policy limits rows. Kafka takes rows; files are taken by number or by size, so how many rows are
in them is learnt from what was read.
"""

import json
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.engines.spark.session.versions import HAS_BYTE_LIMITS

Unit = Literal["rows", "files", "bytes"]

FILE_SOURCE = "FileStreamSource"
GROWTH = 10  # a batch reads at most so many times what the last one did: files differ
_MOST_FILES = 2**31 - 1
_KAFKA = ("KafkaMicroBatchStream", "KafkaSource")
# What limits are in where the user has none. Others may not know a limit that they did not ask for.
_UNITS: dict[str, Unit] = {
    FILE_SOURCE: "bytes" if HAS_BYTE_LIMITS else "files",
    _KAFKA[0]: "rows",
    _KAFKA[1]: "rows",
}
_DEAF = ("RatePerMicroBatchStream",)  # reads what it reads, whatever the limit


class Extent(NamedTuple):
    """What a batch read of one source."""

    rows: int
    files: int
    size_bytes: int

    def amount(self, unit: Unit) -> int:
        """Return it in the unit of a limit."""
        return {"rows": self.rows, "files": self.files, "bytes": self.size_bytes}[unit]


@dataclass(frozen=True, slots=True)
class OwnLimit:
    """How a source's user limits its batches."""

    unit: Unit
    most: int | None = None  # None: not at all

    def at_most(self, rows: int, read: Extent | None = None) -> int:
        """Return the limit for a batch of about so many rows, never above the user's.

        Parameters
        ----------
        read
            What the last batch read; without it one file is, whatever is in it.

        Examples
        --------
        >>> OwnLimit("rows", 500).at_most(1000), OwnLimit("files").at_most(1000)
        (500, 1)
        >>> read = Extent(rows=200, files=2, size_bytes=9000)
        >>> OwnLimit("bytes").at_most(1000, read), OwnLimit("files", 4).at_most(1000, read)
        (45000, 4)
        """
        if self.unit == "rows":
            wanted = rows
        elif read is None:
            wanted = 1  # the first file, however large
        else:
            last = max(1, read.amount(self.unit))
            wanted = max(1, min(GROWTH * last, rows * last // max(1, read.rows)))
        return wanted if self.most is None else min(wanted, self.most)

    def is_full(self, limit: int, read: Extent) -> bool:
        """Tell whether a batch may have been kept from reading another file.

        >>> [OwnLimit("files").is_full(limit, Extent(10, 2, 500)) for limit in (2, 3)]
        [True, False]
        >>> [OwnLimit("bytes").is_full(limit, Extent(10, 2, 500)) for limit in (749, 750)]
        [True, False]
        """
        each = read.amount(self.unit) / max(1, read.files)
        return read.files > 0 and read.amount(self.unit) + each > limit


class AdmittedSource:
    """A source with admission control.

    Parameters
    ----------
    own
        The limit in its user's words, ``floor`` the part of it that asks for more to wait.
    in_order
        Whether a piece of what waits may be read before the rest: none of that is then late.
    """

    def __init__(
        self,
        handles: Handles,
        source: JavaObject,
        own: OwnLimit,
        floor: JavaObject = None,
        in_order: bool = True,
    ) -> None:
        self.source = source
        self.kind = str(source.getClass().getSimpleName())
        self.own = own
        self.read: Extent | None = None  # by the last batch that read something
        self.last: Extent | None = None  # by the last batch; None: nothing
        self.limit = 0  # of that batch
        self.more_waits = False  # nobody knows how much
        self._handles = handles
        self._floor = floor
        if in_order and self.kind == FILE_SOURCE:
            in_order = not self._newest_first()
        self._in_order = in_order or own.most is not None  # its user has it read in pieces

    @property
    def counts_rows(self) -> bool:
        """Whether its offsets tell how many rows wait."""
        return self.own.unit == "rows"

    def limit_to(self, rows: int) -> JavaObject | None:
        """Return the limit for a batch of so many rows; None: it stays as its user has it."""
        limits = self._handles.spark.sql.connector.read.streaming.ReadLimit
        if rows == 0 and self.kind == FILE_SOURCE:
            return limits.maxFiles(0)  # of bytes, it takes one file at least
        if not self._in_order:  # what is left over could be older, and late
            return None
        # Who is not known to take nothing takes the least that there is.
        nothing = rows == 0 and self.kind in _KAFKA
        self.limit = 0 if nothing else self.own.at_most(max(1, rows), self.read)
        if self.kind.startswith("Python"):
            python = self._handles.spark.sql.execution.datasources.v2.python
            found = {"_type": "ReadMaxRows", "max_rows": self.limit}
            return python.PythonStreamingSourceReadLimit(json.dumps(found))
        if self.own.unit == "files":
            return limits.maxFiles(min(self.limit, _MOST_FILES))
        if self.own.unit == "bytes":
            return limits.maxBytes(self.limit)
        most = limits.maxRows(self.limit)
        if self._floor is None:
            return most
        return limits.compositeLimit(self._handles.array(limits, self._floor, most))

    def took(self, read: Extent | None) -> None:
        """Note what the last batch read of it; None: nothing."""
        self.last, self.read = read, read or self.read

    def left_rows(self) -> float | None:
        """Return about how many rows a limited batch has left; None: nobody knows."""
        unread = self._unread_files() if self.kind == FILE_SOURCE else None
        full = self.last is not None and self.own.is_full(self.limit, self.last)
        self.more_waits = unread is None and full
        if unread is not None and self.read is not None:
            return math.ceil(unread * self.read.rows / self.read.files)
        return None if full else 0.0

    def forget_list(self) -> None:
        """Have it look anew for what there is; only while its query stands at its gate."""
        if self.kind == FILE_SOURCE:
            self._field("unreadFiles").set(self.source, None)

    def _unread_files(self) -> int | None:
        unread = self._field("unreadFiles").get(self.source)
        return None if unread is None else int(unread.size())

    def _newest_first(self) -> bool:
        return bool(self._field("sourceOptions").get(self.source).latestFirst())

    def _field(self, name: str) -> JavaObject:
        field = self.source.getClass().getDeclaredField(name)
        field.setAccessible(True)
        return field


def admitted_source(
    handles: Handles, source: JavaObject, limit: JavaObject, in_order: bool = True
) -> AdmittedSource | None:
    """Return a source of an execution, if its batches can be limited.

    Parameters
    ----------
    limit
        The one that it has, as its user wants it.
    in_order
        As :class:`AdmittedSource` takes it.
    """
    kind = str(source.getClass().getSimpleName())
    if kind in _DEAF:
        return None
    if str(limit.getClass().getSimpleName()) == "CompositeReadLimit":
        parts = {str(part.getClass().getSimpleName()): part for part in limit.getReadLimits()}
    else:
        parts = {str(limit.getClass().getSimpleName()): limit}
    floor = parts.get("ReadMinRows")
    if "ReadMaxRows" in parts:
        own = OwnLimit("rows", int(parts["ReadMaxRows"].maxRows()))
    elif "ReadMaxFiles" in parts:
        own = OwnLimit("files", int(parts["ReadMaxFiles"].maxFiles()))
    elif "ReadMaxBytes" in parts:
        own = OwnLimit("bytes", int(parts["ReadMaxBytes"].maxBytes()))
    elif "PythonStreamingSourceReadLimit" in parts:
        told = json.loads(parts["PythonStreamingSourceReadLimit"].json())
        if told.get("_type") != "ReadMaxRows":
            return None
        own = OwnLimit("rows", int(told["max_rows"]))
    elif kind in _UNITS:
        own = OwnLimit(_UNITS[kind])
    else:
        return None
    return AdmittedSource(handles, source, own, floor, in_order)
