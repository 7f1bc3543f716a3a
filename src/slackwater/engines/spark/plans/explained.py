"""Deadlines of a DataFrame by public API alone: read from what ``explain`` prints.

Over Spark Connect no plan can be walked. Its text shows most of what :mod:`.discovery` reads from
the plan itself: windows of fixed length, watermarks, inputs. What Spark has left out of the text,
or what is not understood, is no deadline and never an error.
"""

import contextlib
import io
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TextIO

from pyspark.sql import DataFrame

from slackwater.common.durations import parse_duration_s
from slackwater.core.errors import UsageError
from slackwater.core.windows import Deadlines, InputStream, Window, WindowKind

_US = 1_000_000
_ONE_AT_A_TIME = threading.Lock()  # standard output is there once
_LINE = re.compile(r"(?P<indent>[ :|+-]*)~?(?P<operator>\w+) ?(?P<rest>.*)")  # ~: it streams
_STATEFUL = {"Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "Join"}
_WATERMARK = re.compile(r"(?:[\w-]+, )?(?P<column>[^#]+)#\d+\S*: \w+, (?P<delay>[\w. ]+)$")
# The arithmetic that a time window has been replaced by; see `discovery`.
_WINDOW = re.compile(
    r"named_struct\(start, \w*\(?precisetimestampconversion\(\(+"
    r"precisetimestampconversion\((?P<column>.+?)(#\S+)?, Timestamp\w+, LongType\) - CASE "
    r".*? - (?P<offset>\d+)\) % (?P<slide>\d+)\).*?"
    r" end, .*?\+ (?P<size>\d+)\), LongType, Timestamp\w+\)"
)


def discover_explained(df: DataFrame) -> Deadlines:
    """Return windows and inputs of a streaming DataFrame."""
    with _printed() as printed:
        df.explain(extended=True)
    return read_explained(printed.getvalue())


@contextlib.contextmanager
def _printed() -> Iterator[io.StringIO]:
    """Keep what this thread prints, while others print as ever."""
    with _ONE_AT_A_TIME:
        printed = io.StringIO()
        shared = _Shared(sys.stdout, printed)
        try:
            with contextlib.redirect_stdout(shared):
                yield printed
        finally:
            shared.printed = None


class _Shared:
    """Standard output, without what one thread prints."""

    def __init__(self, others: TextIO, printed: io.StringIO) -> None:
        self.printed: io.StringIO | None = printed  # None: whoever has kept it prints as ever
        self._others = others
        self._thread = threading.get_ident()

    def write(self, text: str) -> int:
        mine = threading.get_ident() == self._thread
        return (self.printed if mine and self.printed else self._others).write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._others, name)


def read_explained(text: str) -> Deadlines:
    """Read windows, upstream first, and inputs, left to right, from the analyzed plan.

    >>> found = read_explained('''== Analyzed Logical Plan ==
    ... count: bigint
    ... Deduplicate [value#1L]
    ... +- EventTimeWatermark 0f1e-a7, timestamp#0: timestamp, 1 minutes 2.5 seconds
    ...    +- StreamingRelationV2 org.Rate@1f, rate, org.Table@2e, [timestamp#0, value#1L]
    ... == Optimized Logical Plan ==''')
    >>> found.inputs
    (InputStream(name='rate', time_column='timestamp', watermark_delay_s=62.5),)
    """
    _, _, rest = text.partition("== Analyzed Logical Plan ==\n")
    plan, _, _ = rest.partition("\n== ")
    windows: dict[Window, None] = {}  # an ordered set
    inputs: list[InputStream] = []
    above: list[tuple[int, InputStream]] = []  # watermarks on the way down, with their depth
    stateful = False
    for line in plan.splitlines()[1:]:
        found = _LINE.match(line)
        if found is None:
            continue
        depth, operator, rest = len(found["indent"]), found["operator"], found["rest"]
        above = [each for each in above if each[0] < depth]
        stateful |= operator in _STATEFUL
        if operator == "EventTimeWatermark":
            above += [(depth, mark) for mark in _watermark(rest)]
        elif operator.startswith("Streaming"):
            marks = [each for _, each in above]
            slowest = max(reversed(marks), key=_delay_s, default=InputStream(""))
            inputs.append(replace(slowest, name=_name(operator, rest)))
        windows |= dict.fromkeys(map(_window, _WINDOW.finditer(rest)))
    return Deadlines(tuple(reversed(windows)) if stateful and inputs else (), tuple(inputs))


def _name(operator: str, text: str) -> str:
    """Return what Spark calls a source; in newer relations its class stands before that."""
    parts = text.split(", ")
    return parts[1] if operator.endswith("V2") and len(parts) > 1 else parts[0]


def _delay_s(stream: InputStream) -> float:
    return stream.watermark_delay_s or 0.0


def _watermark(text: str) -> list[InputStream]:
    """Return the watermark of an operator, as an input without a name."""
    found = _WATERMARK.match(text)
    if found is None:
        return []
    try:
        return [InputStream("", found["column"], parse_duration_s(found["delay"]))]
    except UsageError:  # of months, say
        return []


def _window(found: re.Match[str]) -> Window:
    size_s, slide_s, offset_s = (int(found[key]) / _US for key in ("size", "slide", "offset"))
    kind: WindowKind = "tumbling" if size_s == slide_s else "sliding"
    return Window(kind, size_s, slide_s, offset_s, found["column"])
