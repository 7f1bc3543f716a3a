"""Redis Streams as a log. A position is ``[id of the last entry before it, its ordinal]``.

The *ordinal* is what Redis counts as ever added, less the entries that were still to be read at
that position. So the difference of two ordinals is the number of entries between them, and entries
that are removed before they are read show as a difference to what Redis counts later.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import redis
from numpy.typing import NDArray
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.sources.base import Ints
from slackwater.engines.spark.sources.log.columns import text_column
from slackwater.engines.spark.sources.log.log import (
    NEWEST_ROWS,
    LogRows,
    Outage,
    Position,
    Positions,
    ServerAway,
    Stream,
    data_gone,
)
from slackwater.engines.spark.sources.options import reveal
from slackwater.engines.spark.sources.redis import ARRIVAL, RedisOptions

_ANSWER_S = 5.0  # after this a server that does not answer counts as away
_ENTRIES_AT_ONCE = 5_000
_SEQUENCE_BITS = 20  # of a row's number; Redis numbers the entries of one millisecond from 0

# The id some entries further on, without sending the entries over the network.
_ADVANCE = """
local found = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])
if #found == 0 then return {0, ARGV[1]} end
return {#found, found[#found][1]}
"""

T = TypeVar("T")
Entry = tuple[bytes, Sequence[bytes]]  # its id; its fields and their values in turn
FieldValues = Callable[[bytes], list[bytes | None]]  # of one field, an entry each


@dataclass(frozen=True)
class RedisStream:
    """What Redis told about a stream."""

    added: int = 0  # entries ever
    length: int = 0  # entries that are there
    first_id: str | None = None
    last_id: str = "0-0"  # ever given

    @property
    def earliest(self) -> Position:
        return ["0-0", self.added - self.length]

    @property
    def latest(self) -> Position:
        return [self.last_id, self.added]

    def missing_after(self, position: Position) -> int | None:
        """Count rows that are gone.

        >>> stream = RedisStream(added=10, length=4, first_id="7-0", last_id="10-0")
        >>> [stream.missing_after([f"{n}-0", n]) for n in (2, 6, 8)]
        [4, 0, 0]
        """
        last_read, ordinal = position
        if ordinal > self.added:
            return None  # the stream was made anew
        if self.first_id is not None and id_of(self.first_id) <= id_of(last_read):
            return 0
        missing = self.added - self.length - int(ordinal)
        return None if missing < 0 else missing  # none: the stream was made anew

    def resume(self, position: Position) -> Position:
        last_read, ordinal = position
        if self.first_id is not None and id_of(self.first_id) <= id_of(last_read):
            return [last_read, min(ordinal, self.added)]
        return [last_read, self.added - self.length]


class RedisLog:
    """Streams of one Redis server."""

    def __init__(self, options: RedisOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._client = _client(options.url, options.password)

    def look(self) -> dict[str, Stream]:
        answers = zip(self._options.streams, _speak(self._ask), strict=True)
        return {name: _stream(name, answer) for name, answer in answers}

    def _ask(self) -> list[Any]:
        """Ask Redis about each stream; that there is none is an answer too."""
        pipeline = self._client.pipeline(transaction=False)
        for name in self._options.streams:
            pipeline.xinfo_stream(name)
        answers: list[Any] = pipeline.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, Exception) and not isinstance(answer, ResponseError):
                raise answer
        return answers

    def ordinal(self, position: Position) -> int:
        return int(position[1])

    def arrived_us(self, position: Position) -> int | None:
        return id_of(position[0])[0] * 1000

    def advance(self, name: str, position: Position, rows: int) -> Position:
        last_read, ordinal = position
        left = rows
        while left:
            some = min(left, _ENTRIES_AT_ONCE)
            ask = partial(self._client.eval, _ADVANCE, 1, name, last_read, some)
            found, last = _speak(ask)
            last_read = last.decode()
            left -= found
            if found < some:
                break
        if left and self._options.fail_on_data_loss:
            raise data_gone(name, f"{left} rows")
        return [last_read, ordinal + rows]

    def newest(self, column: str, after: Positions) -> Iterator[pa.Array]:
        pipeline = self._client.pipeline(transaction=False)
        ask: Callable[..., Any] = pipeline.execute_command
        for name, (last_read, _) in after.items():
            ask("XREVRANGE", name, "+", f"({last_read}", "COUNT", NEWEST_ROWS)
        for name, entries in zip(after, _speak(pipeline.execute), strict=True):
            if entries:
                yield RedisRows(name, entries, self._options, self._schema).column(column)

    def read(self, name: str, first: Position, last: Position) -> Iterator[LogRows]:
        outage = Outage(self._options.server, self._options.retry_s)
        last_read, until = first[0], last[0]
        expected = last[1] - first[1]
        while True:
            entries = outage.outlast(partial(self._range, name, last_read, until))
            if entries:
                expected -= len(entries)
                last_read = entries[-1][0].decode()
                yield RedisRows(name, entries, self._options, self._schema)
            if len(entries) < _ENTRIES_AT_ONCE:
                break
        if expected and self._options.fail_on_data_loss:
            raise data_gone(name, f"{expected} rows")

    def _range(self, name: str, after: str, until: str) -> list[Entry]:
        command = ("XRANGE", name, f"({after}", until, "COUNT", _ENTRIES_AT_ONCE)
        ask: Callable[..., Any] = self._client.execute_command
        found: list[Entry] = _speak(partial(ask, *command))
        return found


def id_of(text: str) -> tuple[int, int]:
    """Return an id in the order of ids.

    >>> id_of("5-10") > id_of("5-9")
    True
    """
    milliseconds, _, sequence = text.partition("-")
    return int(milliseconds), int(sequence)


def _stream(name: str, answer: Any) -> RedisStream:
    if isinstance(answer, ResponseError):
        if "no such key" in str(answer):
            return RedisStream()
        if "WRONGTYPE" in str(answer):
            raise UsageError(f"the key {name} in Redis is no stream; name another")
        raise SlackwaterError(f"Redis refuses to tell about the stream {name}: {answer}")
    if "entries-added" not in answer:
        raise UsageError("this Redis is too old to tell what was trimmed: use Redis 7 or later")
    first = answer["first-entry"]
    return RedisStream(
        added=answer["entries-added"],
        length=answer["length"],
        first_id=None if first is None else first[0].decode(),
        last_id=answer["last-generated-id"].decode(),
    )


def _speak(action: Callable[[], T]) -> T:
    """Tell a server that may come back from one that refuses."""
    try:
        return action()
    except (AuthenticationError, AuthorizationError) as error:
        raise UsageError(
            f"Redis refuses the login: {error}; see the options url and password"
        ) from None
    except (RedisConnectionError, RedisTimeoutError, OSError) as error:
        raise ServerAway(str(error)) from None
    except RedisError as error:
        raise SlackwaterError(f"Redis refuses a command of the source: {error}") from None


@lru_cache(maxsize=8)  # a worker serves many batches
def _client(url: str, password: str | None) -> redis.Redis:
    """Make a connection that tries once and does not parse entries into dictionaries."""
    client = redis.Redis.from_url(
        url,
        password=None if password is None else reveal(password),
        socket_timeout=_ANSWER_S,
        socket_connect_timeout=_ANSWER_S,
        retry=Retry(NoBackoff(), 0),
    )
    for command in ("XRANGE", "XREVRANGE"):
        client.set_response_callback(command, lambda answer, **_: answer)
    return client


class RedisRows:
    """Entries of one stream."""

    def __init__(
        self, name: str, entries: list[Entry], options: RedisOptions, schema: pa.Schema
    ) -> None:
        self._name = name
        self._entries = entries
        self._options = options
        self._schema = schema
        self._ids = _ids(entries)

    @property
    def numbers(self) -> Ints:
        return (self._ids[:, 0] << _SEQUENCE_BITS) + self._ids[:, 1]

    @property
    def arrival_us(self) -> Ints:
        return self._ids[:, 0] * 1000

    def column(self, name: str) -> pa.Array:
        return self._column(self._schema.field(name), _values(self._entries), self.arrival_us)

    def batch(self, kept: NDArray[np.intp] | None) -> pa.RecordBatch:
        entries, arrival_us = self._entries, self.arrival_us
        if kept is not None:
            entries, arrival_us = [entries[place] for place in kept.tolist()], arrival_us[kept]
        values = _values(entries)
        columns = [self._column(field, values, arrival_us) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, field: pa.Field, values: FieldValues, arrival_us: Ints) -> pa.Array:
        if field.name == ARRIVAL and self._options.arrival:
            return pa.array(arrival_us).cast(field.type)
        texts = pa.array(values(field.name.encode()), pa.binary())
        where = f"{self._name}, field {field.name}"
        return text_column(
            where, texts, field.type, self._options.timestamps, self._options.malformed
        )


def _ids(entries: list[Entry]) -> Ints:
    """Return milliseconds and sequence numbers, one row an entry."""
    parts = b"-".join([entry[0] for entry in entries]).split(b"-")
    # Users may give ids of their own, up to the largest unsigned number.
    return np.array(parts, np.bytes_).astype(np.uint64).astype(np.int64).reshape(-1, 2)


def _values(entries: list[Entry]) -> FieldValues:
    """Return a function of a field that gives its values.

    Most often all entries have the same fields.

    >>> entries = [(b"1-0", [b"a", b"x"]), (b"2-0", [b"a", b"y", b"b", b"z"])]
    >>> _values(entries)(b"b")
    [None, b'z']
    >>> _values(entries[:1])(b"a")
    [b'x']
    """
    names = entries[0][1][::2] if entries else []
    if all(entry[1][::2] == names for entry in entries):
        places = {field: 2 * number + 1 for number, field in enumerate(names)}

        def same(field: bytes) -> list[bytes | None]:
            place = places.get(field)
            if place is None:
                return [None] * len(entries)
            return [entry[1][place] for entry in entries]

        return same
    lookups = [dict(zip(entry[1][::2], entry[1][1::2], strict=True)) for entry in entries]
    return lambda field: [lookup.get(field) for lookup in lookups]
