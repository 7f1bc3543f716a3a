"""Windows and input streams of a query, as they matter for its deadlines."""

import math
from dataclasses import dataclass
from typing import Literal

WindowKind = Literal["tumbling", "sliding", "session"]


@dataclass(frozen=True, slots=True)
class Window:
    """One windowed operator.

    >>> Window("tumbling", size_s=3.0, slide_s=3.0, offset_s=1.0).next_end(10.5)
    13.0
    >>> Window("sliding", size_s=5.0, slide_s=2.0).next_end(5.0)
    7.0

    A session's gap that is computed for each row is not known: it is infinite, and so is its end.

    >>> Window("session", size_s=math.inf, slide_s=math.inf).next_end(10.0)
    inf
    """

    kind: WindowKind
    size_s: float  # length; for a session window its gap, infinite where it is not known
    slide_s: float  # distance between two starts; for tumbling the size, for session the gap
    offset_s: float = 0.0  # windows start at offset + n * slide (seconds since the epoch)
    time_column: str = ""  # event-time column that is windowed
    inputs: tuple[int, ...] = ()  # which of the query's inputs feed it, by position; (): all

    def next_end(self, event_time_s: float) -> float:
        """Return the first window end strictly after ``event_time_s``."""
        if math.isinf(self.size_s):
            return math.inf
        phase = self.offset_s + self.size_s
        steps = (event_time_s - phase) // self.slide_s + 1
        end_s = phase + steps * self.slide_s
        # A slide such as 0.1 is not exact: what should be just after may come out as the same.
        return end_s if end_s > event_time_s else phase + (steps + 1) * self.slide_s


@dataclass(frozen=True, slots=True)
class InputStream:
    """One streaming source of a query, as seen in its plan."""

    name: str  # as the engine describes it
    time_column: str | None = None  # column that carries its watermark, if any
    watermark_delay_s: float | None = None  # None: no watermark


@dataclass(frozen=True, slots=True)
class Deadlines:
    """What discovery found: which windows close, and which inputs must get there first."""

    windows: tuple[Window, ...] = ()  # in the order of the data flow: upstream first
    inputs: tuple[InputStream, ...] = ()
    output_mode: str = "append"  # in update and complete mode a window is final once it is read

    @property
    def closing(self) -> tuple[Window, ...]:
        """Windows that end at known times; sessions end whenever their events do."""
        return tuple(w for w in self.windows if w.kind != "session" and math.isfinite(w.size_s))

    @property
    def marked(self) -> bool:
        """Whether some input has a watermark."""
        return any(stream.watermark_delay_s is not None for stream in self.inputs)

    @property
    def has_deadline(self) -> bool:
        """Whether some window and some watermark together promise a result at a known time."""
        return bool(self.closing) and self.marked
