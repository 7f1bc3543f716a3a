"""Spark's progress of a micro-batch as it travels: without the long descriptions."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

Count = Annotated[int, Meta(ge=-(2**53), le=2**53)]  # exact as a float, so nothing overflows
Milliseconds = Count | Annotated[float, Meta(ge=-(2**53), le=2**53)]


class Durations(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Milliseconds by phase; a trigger that found nothing to do has no ``addBatch``."""

    add_batch: Milliseconds | None = None
    commit_offsets: Milliseconds | None = None
    latest_offset: Milliseconds | None = None
    trigger_execution: Milliseconds | None = None


class EventTime(Struct, frozen=True, omit_defaults=True):
    """Of the rows that were read, as ISO timestamps."""

    max: str | None = None
    watermark: str | None = None


class Sink(Struct, frozen=True, rename="camel"):
    """Where rows were written; Spark says −1 when a sink does not count."""

    num_output_rows: Count = -1


class SourceOffsets(Struct, frozen=True, rename="camel"):
    """How far a source was read and how far it could have been, in whatever form it counts."""

    end_offset: Any = None
    latest_offset: Any = None


class StateOperator(Struct, frozen=True, rename="camel"):
    """One state store."""

    num_rows_total: Count = 0
    memory_used_bytes: Count = 0
    num_rows_dropped_by_watermark: Count = 0


class Newest(Struct, frozen=True):
    """What :func:`slackwater.spark.observe_newest` has a query tell with every batch."""

    newest_us: Any = UNSET  # event time of the newest row, in microseconds; users may observe more


class Observed(Struct, frozen=True):
    """Observations of the user's; only ours is looked at."""

    slackwater: Newest | UnsetType = UNSET


class QueryProgress(Struct, frozen=True, rename="camel"):
    """The part of a ``StreamingQueryProgress`` that the controller needs."""

    timestamp: str
    num_input_rows: Count
    duration_ms: Durations
    event_time: EventTime = EventTime()
    sink: Sink = Sink()
    sources: tuple[SourceOffsets, ...] = ()
    state_operators: tuple[StateOperator, ...] = ()
    observed_metrics: Observed | UnsetType = UNSET

    def __post_init__(self) -> None:
        instant_s(self.timestamp)
        if self.ran_a_batch and self.duration_ms.trigger_execution is None:
            raise ValueError("a batch without triggerExecution")

    @property
    def ran_a_batch(self) -> bool:
        """Whether it did; Spark also reports triggers that found nothing to do."""
        return self.duration_ms.add_batch is not None


def instant_s(text: str) -> float:
    """Return the seconds since the epoch of Spark's ISO timestamps.

    >>> instant_s("1970-01-01T00:00:01.500Z")
    1.5
    """
    try:
        return datetime.fromisoformat(text).timestamp()
    except OverflowError as error:
        raise ValueError(f"{text!r} is no time") from error
