"""What the controller is told of a query before it runs."""

import logging

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.common.durations import as_seconds
from slackwater.core.errors import UsageError
from slackwater.core.model import QuerySpec
from slackwater.core.windows import Deadlines

Duration = float | str  # seconds, or as people write it: "2 seconds", "150ms"

log = logging.getLogger("slackwater.fleet")

_NO_DATA = "spark.sql.streaming.noDataProgressEventInterval"
USUAL_WAIT_S = 10.0
WINDOWS_OF_WAIT = 2.5  # a query is served before all others after half of its bound


def max_wait_s(stated_s: float | None, deadlines: Deadlines) -> float:
    """Return the bound on waiting: as stated, else one that leaves its windows time to fill.

    >>> from slackwater.core import Window
    >>> max_wait_s(None, Deadlines()), max_wait_s(None, Deadlines((Window("tumbling", 60, 60),)))
    (10.0, 150.0)
    """
    if stated_s is not None:
        return stated_s
    delays = (stream.watermark_delay_s or 0.0 for stream in deadlines.inputs)
    longest_s = max((window.slide_s for window in deadlines.closing), default=0.0)
    return max(USUAL_WAIT_S, WINDOWS_OF_WAIT * longest_s + max(delays, default=0.0))


def stated_wait_s(
    stated: Duration | None, fleet_s: float | None, what: str = "max_wait"
) -> float | None:
    """Return the bound on waiting that a user states of a query, else of its fleet, if any.

    >>> stated_wait_s("2 seconds", 10.0), stated_wait_s(None, 10.0), stated_wait_s(None, None)
    (2.0, 10.0, None)
    """
    return fleet_s if stated is None else as_seconds(what, stated)


def refuse_fewer_than_one(**numbers: int | None) -> None:
    """Refuse a stated number of things at once that would let nothing happen."""
    for what, number in numbers.items():
        if number is not None and number < 1:
            raise UsageError(f"{what} must be at least 1, not {number}")


def refuse_unknown_choice(one_batch: str) -> str:
    """Return the choice of one batch a window, if it is one."""
    if one_batch not in ("auto", "off"):
        raise UsageError(f"one_batch is auto or off, not {one_batch!r}")
    return one_batch


def query_spec(
    name: str,
    priority: float,
    stated_wait_s: float | None,
    deadlines: Deadlines | None,
    target: Duration | None = None,
    idle_after: Duration | None = None,
) -> QuerySpec:
    """Make a spec of what a user states; refuse what makes no sense."""
    if priority < 0:
        raise UsageError(f"{name}: priority must not be negative ({priority})")
    known = deadlines or Deadlines()
    return QuerySpec(
        name,
        priority,
        max_wait_s(stated_wait_s, known),
        known,
        target_s=seconds("target", target),
        idle_after_s=seconds("idle_after", idle_after),
    )


def seconds(what: str, stated: Duration | None) -> float | None:
    """Read a duration that a user may state."""
    return None if stated is None else as_seconds(what, stated)


def warn_of_progress_without_data(spark: SparkSession) -> None:
    """Warn of a setting with which Spark reports every look that finds nothing.

    Such a report counts as no batch, so figures stay right; it costs an event for each look.
    """
    try:
        every_ms = int(spark.conf.get(_NO_DATA, "10000") or 10000)
    except ValueError:
        return  # written with a unit, which nobody does for zero
    if every_ms <= 0:
        log.warning("%s is %d: Spark reports every look for data; unset it", _NO_DATA, every_ms)


def refuse_no_writer(writer: object, method: str) -> None:
    """Refuse what is no ``df.writeStream``, and say what to do with it."""
    if isinstance(writer, DataStreamWriter):
        return
    if isinstance(writer, DataFrame):
        raise UsageError(f"{method} takes df.writeStream, not df: say where its rows go first")
    if isinstance(writer, StreamingQuery):
        raise UsageError("this query runs already: fleet.hold(query) takes it over as it is")
    raise UsageError(f"{method} takes df.writeStream, not {type(writer).__name__}")
