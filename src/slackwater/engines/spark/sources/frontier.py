"""How far a source has come: the newest event time that has arrived there, read or not.

A frontier is asked in the driver, at the moment of a grant, so it must answer at once. It may be
told a little late, never early: the batch that begins after the answer must find the row that it
speaks of.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Protocol

from py4j.java_gateway import JavaObject
from pyspark.sql.types import StructType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.plans.event_time import TracedWatermark
from slackwater.engines.spark.plans.tree import relation_options
from slackwater.engines.spark.sources import file_frontier, spark_kafka
from slackwater.engines.spark.sources.base import Source, SourceOptions
from slackwater.engines.spark.sources.directives import DirectivesFile
from slackwater.engines.spark.sources.feed import FeedSource
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.engines.spark.sources.kafka import KafkaSource
from slackwater.engines.spark.sources.log.reader import LogReader
from slackwater.engines.spark.sources.process import now_us
from slackwater.engines.spark.sources.query_log import LogSource
from slackwater.engines.spark.sources.redis import RedisSource
from slackwater.engines.spark.sources.remote_frontier import ANSWER_S, RemoteFrontier, offset_read
from slackwater.engines.spark.sources.spark_kafka import PayloadTimes, kafka_source_frontier

# Sources that keep what arrives, so that their newest rows can be looked at.
_LOGS: dict[str, type[Source]] = {one.FORMAT: one for one in (KafkaSource, LogSource, RedisSource)}
_ISOLATION = "kafka.isolation.level"
# Of sources that nobody knows here, too: maxEventsPerTrigger, streaming-max-rows-per-micro-batch.
_LIMIT = re.compile("per[-_]?(trigger|(micro[-_]?)?batch)|^(knob|sampled|shed_by|sheddable|spare)$")

# What a user may tell of a query by its name: the newest event time in seconds since the epoch, of
# its only input or of each by position. None, or an input that is left out: not known.
ToldByName = Callable[[str], float | Mapping[int, float] | None]
ToldFrontier = ToldByName | PayloadTimes


# Returns what asks sources of Spark's, all in one call, for their offsets that are numbers.
OffsetsOf = Callable[[Sequence[JavaObject]], Callable[[], list[int]]]


def each_offset(sources: Sequence[JavaObject]) -> Callable[[], list[int]]:
    """Ask each source by itself: that takes two calls into the JVM for each."""
    return lambda: [int(source.latestOffset().offset()) for source in sources]


class Frontier(Protocol):
    """Tells how far one input has come."""

    def newest_us(self) -> int | None:
        """Return the largest event time that has arrived; None: none has, or nobody knows.

        Raises
        ------
        FrontierLost
            With the reason, where it will never be known again.
        """


class NoFrontier(UsageError):
    """This source does not tell how far it has come; the message says why."""


class FeedFrontier:
    """The frontier of a feed, which follows from its options and the time.

    The feed goes by the clock as well, and in another process: it is told what was answered, so
    that its next batch reads so far even if the clock goes back in between.
    """

    def __init__(self, options: FeedOptions) -> None:
        self._file = _directives(options)
        self._timeline = options.traffic.timeline()

    def newest_us(self) -> int | None:
        """Return the largest event time among the rows that have arrived by now."""
        until_us = now_us()
        self._file.reach(until_us)
        return self._timeline.frontier_us(until_us)


class RateFrontier:
    """The frontier of Spark's rate source: rows come once a second, counted from its creation.

    The source itself is asked: what it has answered once it hands out, whatever the clock does.
    Of several in one query all count as the one that is least far.
    """

    def __init__(
        self, execution: JavaObject, rows_per_second: int, offsets_of: OffsetsOf = each_offset
    ) -> None:
        self._execution = execution
        self._step_ms = -(-1000 // rows_per_second)
        self._offsets_of = offsets_of
        self._created_ms: list[int] = []  # of each source
        self._seconds: Callable[[], list[int]] = list  # how far each has come

    def newest_us(self) -> int | None:
        """Return the time of the last row of the last whole second."""
        if not self._created_ms:
            sources = list(self._find_sources())
            self._created_ms = [int(source.creationTimeMs()) for source in sources]
            self._seconds = self._offsets_of(sources) if sources else list
        seconds = self._seconds()
        if min(seconds, default=0) < 1:
            return None
        ends_ms = [c + 1000 * s for c, s in zip(self._created_ms, seconds, strict=True)]
        return 1000 * (min(ends_ms) - self._step_ms)

    def _find_sources(self) -> Iterator[JavaObject]:
        sources = self._execution.uniqueSources().keysIterator()
        while sources.hasNext():
            source = sources.next()
            if source.getClass().getSimpleName() == "RateStreamMicroBatchStream":
                yield source


class InputToldByUser:
    """The frontier of one input, as a function of the user's tells it.

    It is called in a thread of its own, and not again before it has returned: one that hangs
    leaves the frontier unknown and holds nobody up.
    """

    def __init__(self, told: ToldByName, query: str, place: int, alone: bool) -> None:
        self._told = told
        self._query = query
        self._place = place
        self._alone = alone  # the query has no other input
        self._asked: Future[float | Mapping[int, float] | None] | None = None

    def newest_us(self) -> int | None:
        """Ask the user's function; what it raises is raised here."""
        limit_s = 0.0
        if self._asked is None:
            self._asked, limit_s = Future(), ANSWER_S
            threading.Thread(target=self._call, args=(self._asked,), daemon=True).start()
        done, _ = wait((self._asked,), limit_s)
        if not done:
            return None
        answer, self._asked = self._asked, None
        found = answer.result()
        if isinstance(found, Mapping):
            newest_s = found.get(self._place)
        else:
            newest_s = found if self._alone else None  # of which input nobody knows
        return None if newest_s is None else int(newest_s * 1e6)

    def _call(self, answer: "Future[float | Mapping[int, float] | None]") -> None:
        try:
            answer.set_result(self._told(self._query))
        except BaseException as error:
            answer.set_exception(error)


def refuse_limited(relation: JavaObject) -> None:
    """Refuse a source whose batches may not read all that has arrived."""
    own = {
        key.lower() for key, value in relation_options(relation).items() if value.lower() != "false"
    }
    if limits := sorted(filter(_LIMIT.search, own)):
        raise NoFrontier(f"the source's batches may leave rows behind ({', '.join(limits)})")


def source_frontier(
    traced: TracedWatermark, execution: JavaObject, offsets_of: OffsetsOf = each_offset
) -> Frontier:
    """Return the frontier of the source that a watermark was traced to.

    Raises
    ------
    NoFrontier
        With the reason, where the source does not tell it.
    """
    name, column = traced.source_name.partition("[")[0], traced.column  # files: their folder
    known = (FeedSource.FORMAT, "rate", spark_kafka.FORMAT, file_frontier.FILES)
    if name not in _LOGS and name not in known:
        # others may not even have options to read
        raise NoFrontier(f"the source {name or 'of the query'} does not tell how far it has come")
    if column is None:
        raise NoFrontier("the event time is computed")
    options = relation_options(traced.source)
    if name == FeedSource.FORMAT:
        return _feed(column, options)
    if name in _LOGS:
        return _log(_LOGS[name], column, traced, execution)
    if name == spark_kafka.FORMAT:
        return _kafka(column, traced, execution)
    if name == file_frontier.FILES:
        return _files(column, traced, execution)
    texts = {key.lower(): value for key, value in options.items()}
    return _rate(texts, execution, offsets_of)


def _feed(column: str, texts: Mapping[str, str]) -> FeedFrontier:
    options = FeedOptions.from_texts(texts)
    _refuse_partial(options)
    if column != options.payload().event_time:
        raise NoFrontier(f"the watermark is on {column}, not on the time of the events")
    return FeedFrontier(options)


def _log(
    source: type[Source], column: str, traced: TracedWatermark, execution: JavaObject
) -> RemoteFrontier:
    options = source.OPTIONS.from_texts(relation_options(traced.source))
    _refuse_partial(options)
    schema = StructType.fromJson(json.loads(traced.source.schema().json()))
    reader = source.READER(options, schema)
    assert isinstance(reader, LogReader)
    file = _directives(options)

    def newest_us() -> int | None:
        after = offset_read(execution, traced.place, traced.places)
        newest_us = None if after is None else reader.newest_us(column, after)
        if after is not None and newest_us is not None:
            # Its batch must read so far: a server that goes away meanwhile is waited for.
            file.reach(max(now_us(), reader.planned_us(after) + 1))
        return newest_us

    return RemoteFrontier(newest_us)


def _directives(options: SourceOptions) -> DirectivesFile:
    """Return where a source of ours is told what was answered: its batch must keep to it."""
    if options.directives is None:
        raise NoFrontier("the source has no file by which it could be told how far to read")
    return DirectivesFile(Path(options.directives))


def _refuse_partial(options: SourceOptions) -> None:
    """Refuse a source of ours whose batches may not have all that has arrived."""
    if options.sampled or options.sheddable:
        raise NoFrontier("rows of the source may be dropped")
    if options.rows_per_batch is not None or options.knob is not None:
        raise NoFrontier("the source limits its batches")


def _kafka(column: str, traced: TracedWatermark, execution: JavaObject) -> RemoteFrontier:
    refuse_limited(traced.source)
    if column != spark_kafka.TIMESTAMP:
        raise NoFrontier(f"the watermark is on {column}, not on the time of the records")
    options = relation_options(traced.source)
    if {k.lower(): v for k, v in options.items()}.get(_ISOLATION) == "read_committed":
        raise NoFrontier("records of transactions that were given up would count")
    return kafka_source_frontier(execution, traced.place, traced.places, options)


def payload_frontier(
    times: PayloadTimes, traced: TracedWatermark, execution: JavaObject
) -> Frontier:
    """Return the frontier of event times in the payload, of Spark's own Kafka source."""
    if traced.source_name != spark_kafka.FORMAT:
        raise NoFrontier("kafka_frontier is for Spark's own Kafka source")
    refuse_limited(traced.source)
    options = relation_options(traced.source)
    return kafka_source_frontier(execution, traced.place, traced.places, options, times.event_time)


def _files(column: str, traced: TracedWatermark, execution: JavaObject) -> RemoteFrontier:
    refuse_limited(traced.source)
    if (why_not := file_frontier.why_untold(traced.source, column)) is not None:
        raise NoFrontier(why_not)
    return file_frontier.parquet_frontier(
        traced.source, column, execution, traced.place, traced.places
    )


def _rate(options: Mapping[str, str], execution: JavaObject, offsets_of: OffsetsOf) -> RateFrontier:
    if options.get("rampuptime", "0s") not in ("0", "0s"):
        raise NoFrontier("the rate source ramps up")
    return RateFrontier(execution, int(options.get("rowspersecond", 1)), offsets_of)
