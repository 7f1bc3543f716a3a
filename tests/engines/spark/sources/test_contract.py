"""What every source of ours keeps: exact replays, limits, and directives that fail to exact.

Redis is a real redis-server; Kafka is the client library's mock cluster, not Kafka.
"""

import json
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from slackwater.engines.spark.sources import feed as feed_module
from slackwater.engines.spark.sources.base import Offset, SourceOptions, SourceReader
from slackwater.engines.spark.sources.directives import DirectivesFile
from slackwater.engines.spark.sources.feed import FeedReader
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.engines.spark.sources.kafka import KafkaOptions, KafkaReader
from slackwater.engines.spark.sources.log import reader as reader_module
from slackwater.engines.spark.sources.log.segment_log import SegmentOptions, append
from slackwater.engines.spark.sources.query_log import SegmentReader
from slackwater.engines.spark.sources.redis import RedisOptions, RedisReader
from slackwater.engines.spark.sources.shed_rows import luck_by_key
from slackwater.quality.rates import ShedPlan
from slackwater.sampling.grid import Grid
from slackwater.sampling.plan import CellPlan, Plan
from slackwater.testing import check_source
from slackwater.traffic import Traffic
from tests.engines.spark.reading import read, with_sample
from tests.waiting import eventually

SCHEMA = StructType([StructField("number", LongType()), StructField("at", TimestampType())])
ARROW = pa.schema([("number", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
ALL = ReadAllAvailable()
START_US = 1_700_000_000_000_000
ROW_US = 1000  # from one row to the next
PLAN = Plan(Grid(100_000, 100_000, 0, 50_000), CellPlan(30_000, (0.5,)), 0)


class Numbers:
    """The payload of the feed, over two partitions."""

    schema, event_time = "number long", "at"

    def __init__(self, *, seed: int) -> None:
        pass

    def columns(self, partition: int, index: NDArray[np.int64]) -> dict[str, pa.Array]:
        return {"number": pa.array(2 * index + partition)}


class SourceUnderTest:
    """A source whose rows are numbered, one a millisecond by a clock that the test moves."""

    samples = True
    options: type[SourceOptions]
    reader: type[SourceReader]

    def __init__(self, folder: Path) -> None:
        self.now_us = START_US - 1
        self.rows = 0
        self.told = DirectivesFile(folder / "told.json")

    def arguments(self) -> dict[str, Any]:
        raise NotImplementedError

    def write(self, numbers: range) -> None:
        """Let rows arrive."""

    def add_rows(self, count: int) -> None:
        self.now_us += count * ROW_US
        self.write(range(self.rows, self.rows + count))
        self.rows += count

    def make(self, **options: Any) -> SourceReader:
        """Make a reader anew, as Spark does: its options have been texts."""
        given = self.options(directives=str(self.told.path), **self.arguments(), **options)
        schema = with_sample(SCHEMA) if given.sampled else SCHEMA
        return self.reader(self.options.from_texts(given.texts()), schema)


class Feed(SourceUnderTest):
    options, reader = FeedOptions, FeedReader

    def arguments(self) -> dict[str, Any]:
        traffic = Traffic(start_s=START_US / 1e6, rate="1000", delays="constant:0ms", partitions=2)
        return {"traffic": traffic, "generator": f"{__name__}:Numbers"}


class Redis(SourceUnderTest):
    options, reader = RedisOptions, RedisReader

    def __init__(self, folder: Path, server: Any) -> None:
        super().__init__(folder)
        self.server = server

    def arguments(self) -> dict[str, Any]:
        names = {"streams": ("a", "b"), "event_time": "at", "timestamps": "us"}
        return {"url": self.server.url, **names}

    def write(self, numbers: range) -> None:
        for place, name in enumerate("ab"):
            for number in numbers[place::2]:
                row: dict[str, object] = {"number": number, "at": at_us(number)}
                self.server.add(name, [row], first_ms=at_us(number) // 1000)


class Kafka(SourceUnderTest):
    options, reader = KafkaOptions, KafkaReader

    def __init__(self, folder: Path, mock: Any) -> None:
        super().__init__(folder)
        self.mock = mock

    def arguments(self) -> dict[str, Any]:
        names = {"value": "json", "event_time": "at", "timestamps": "us"}
        return {"servers": self.mock.address, "topics": ("t",), **names}

    def write(self, numbers: range) -> None:
        for partition in (0, 1):  # of four: each read of one takes its time
            mine = ({"number": number, "at": at_us(number)} for number in numbers[partition::2])
            texts = [json.dumps(row).encode() for row in mine]
            self.mock.send("t", texts, partition=partition)


class QueryLog(SourceUnderTest):
    samples = False
    options, reader = SegmentOptions, SegmentReader

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder / "log"
        self.folder.mkdir()

    def arguments(self) -> dict[str, Any]:
        return {"folders": (str(self.folder),)}

    def write(self, numbers: range) -> None:
        columns = {"number": list(numbers), "at": [at_us(number) for number in numbers]}
        append(self.folder, numbers.start, pa.table(columns, schema=ARROW))


def at_us(number: int) -> int:
    return START_US + number * ROW_US


MAKE: dict[str, Callable[[pytest.FixtureRequest, Path], SourceUnderTest]] = {
    "feed": lambda request, folder: Feed(folder),
    "redis": lambda request, folder: Redis(folder, request.getfixturevalue("redis_server")),
    "kafka-mock": lambda request, folder: Kafka(folder, request.getfixturevalue("kafka_mock")),
    "query-log": lambda request, folder: QueryLog(folder),
}
MARKS = {"redis": pytest.mark.server}
NAMES = [pytest.param(name, marks=MARKS.get(name, ())) for name in MAKE]


@pytest.fixture(params=NAMES)
def source(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SourceUnderTest]:
    made = MAKE[request.param](request, tmp_path)
    for module in (feed_module, reader_module):
        monkeypatch.setattr(module, "now_us", lambda: made.now_us)
    yield made
    made.told.end_shedding()  # threads that reply go on until the process ends


def plan(reader: SourceReader, start: Offset, limit: ReadLimit = ALL) -> Offset:
    """Return the end of the next micro-batch as the checkpoint keeps it."""
    return json.loads(json.dumps(reader.latestOffset(start, limit)))  # type: ignore[no-any-return]


def numbers(rows: list[dict[str, Any]]) -> Counter[int]:
    return Counter(row["number"] for row in rows)


def everything(source: SourceUnderTest) -> list[dict[str, Any]]:
    """Read all rows that have arrived, exactly."""
    reader = source.make()
    start = reader.initialOffset()
    return read(reader, start, reader.latestOffset(start, ALL))


def test_spark_s_promises_hold(source: SourceUnderTest) -> None:
    """Replays, cuts, limits, pickles and runs that end: as for any source of a user's."""
    check_source(source.make, source.add_rows)


@pytest.mark.parametrize("limits", [[1], [3, 17, 2], [40, 1000]])
def test_any_cuts_give_every_row_once(source: SourceUnderTest, limits: list[int]) -> None:
    source.add_rows(60)
    reader = source.make()
    offsets = [reader.initialOffset()]
    for step in range(5):
        offsets.append(plan(reader, offsets[-1], ReadMaxRows(limits[step % len(limits)])))
    offsets.append(plan(reader, offsets[-1]))
    pieces = [read(reader, *pair) for pair in pairwise(offsets)]
    whole = everything(source)
    assert sum(map(numbers, pieces), Counter()) == numbers(whole) == dict.fromkeys(range(60), 1)
    again = source.make()
    assert pieces == [read(again, *pair) for pair in pairwise(offsets)], "a replay differs"


def test_a_row_limit_is_kept_and_lifted(source: SourceUnderTest) -> None:
    source.add_rows(60)
    reader = source.make(rows_per_batch=40)
    start, usual = reader.initialOffset(), reader.getDefaultReadLimit()
    assert plan(reader, start, usual)["n"] - start["n"] == 40
    source.told.update(rows=7)
    assert plan(reader, start, usual)["n"] - start["n"] == 7
    source.told.update(rows=7, shared=True)
    assert plan(reader, start, usual)["n"] - start["n"] == 40, "nobody may limit it"
    source.told.update(rows=None, shared=False)
    assert plan(reader, start, usual)["n"] - start["n"] == 40


def test_a_user_s_own_limit_comes_first(source: SourceUnderTest, tmp_path: Path) -> None:
    source.add_rows(60)
    source.told.update(rows=7)
    (tmp_path / "knob.json").write_text('{"rows": 9}')
    reader = source.make(knob=str(tmp_path / "knob.json"))
    start = reader.initialOffset()
    assert plan(reader, start)["n"] - start["n"] == 9
    (tmp_path / "knob.json").unlink()
    assert plan(reader, start)["n"] - start["n"] == 60


def test_nothing_is_read_until_its_end_and_no_longer(source: SourceUnderTest) -> None:
    source.add_rows(20)
    reader = source.make()
    start = reader.initialOffset()
    source.told.update(rows=0, until=time.time() + 60)
    assert reader.latestOffset(start, ALL) is start
    source.told.update(rows=0, until=time.time() - 1)
    assert plan(reader, start)["n"] - start["n"] == 20
    source.told.update(rows=0, until=time.time() + 60)
    reader.prepareForTriggerAvailableNow()  # which would take nothing for the end
    assert plan(reader, start)["n"] > start["n"]


def test_shedding_changes_nothing_in_a_replay(source: SourceUnderTest) -> None:
    source.add_rows(400)
    source.told.shed(ShedPlan(0.5))
    reader = source.make(sheddable=True)
    start = reader.initialOffset()
    end = plan(reader, start)
    kept = read(reader, start, end)
    assert end["k"] == [1.0, 0.5]
    assert 120 < len(kept) < 280
    assert numbers(kept) <= numbers(everything(source))
    for change in (lambda: source.told.shed(ShedPlan(0.1)), source.told.end_shedding):
        change()
        assert read(source.make(sheddable=True), start, end) == kept
    assert "k" not in plan(reader, start)


def test_keys_are_shed_together(source: SourceUnderTest) -> None:
    source.add_rows(100)
    source.told.shed(ShedPlan(0.5))
    reader = source.make(shed_by=("number",))
    start = reader.initialOffset()
    by_key = numbers(read(reader, start, plan(reader, start)))
    assert 20 < len(by_key) < 80
    luck = luck_by_key([pa.array(range(100), pa.int64())])
    expected = np.flatnonzero(luck < 0.5).tolist()
    assert sorted(by_key) == expected, "the same keys are kept by every source"


def test_a_ceiling_withholds_rows_and_a_replay_samples_the_same(source: SourceUnderTest) -> None:
    if not source.samples:
        pytest.skip("its rows have no event time")
    source.add_rows(1)
    source.told.sample(PLAN)
    reader = source.make(sampled=True)
    offsets, seen = [reader.initialOffset()], []
    for step in range(12):
        source.add_rows(35 + step)
        offsets.append(plan(reader, offsets[-1]))
        rows = read(reader, offsets[-2], offsets[-1])
        ceiling_us = offsets[-1]["s"]["ceiling"]
        assert all(row["at"].timestamp() * 1e6 < ceiling_us for row in rows)
        seen.append(rows)
    arrived = [row for row in everything(source) if row["at"].timestamp() * 1e6 < ceiling_us]
    sampled = [row for rows in seen for row in rows if row["sample"]["delay"] is not None]
    assert max(numbers([row for rows in seen for row in rows]).values()) == 1
    assert 0.3 < len(sampled) / len(arrived) < 0.7
    source.told.sample(None)
    again = source.make(sampled=True)
    assert seen == [read(again, *pair) for pair in pairwise(offsets)], "a replay differs"


@pytest.mark.parametrize("content", ["{", '{"rows": -1}', '{"rows": 3, "shed": {}}'])
@pytest.mark.parametrize("kind", ["plain", "sheddable", "sampled"])
def test_a_broken_file_is_no_directive(source: SourceUnderTest, kind: str, content: str) -> None:
    if kind == "sampled" and not source.samples:
        pytest.skip("its rows have no event time")
    source.add_rows(40)
    source.told.path.write_text(content)
    reader = source.make(**{} if kind == "plain" else {kind: True})
    start = reader.initialOffset()
    end = plan(reader, start)
    assert not {"k", "s"} & end.keys()
    assert numbers(read(reader, start, end)) == dict.fromkeys(range(40), 1)


def test_a_reader_in_use_survives_pickling(source: SourceUnderTest) -> None:
    source.add_rows(40)
    reader = source.make()
    start = reader.initialOffset()
    end = plan(reader, start, ReadMaxRows(11))
    copied = pickle.loads(pickle.dumps(reader))
    assert plan(copied, start, ReadMaxRows(11))["n"] == end["n"]
    assert read(copied, start, end) == read(reader, start, end)


def test_what_has_arrived_is_told_while_somebody_sheds(source: SourceUnderTest) -> None:
    source.add_rows(40)
    source.told.shed(ShedPlan(0.5))
    reader = source.make(sheddable=True)
    plan(reader, reader.initialOffset())
    eventually(lambda: bool(source.told.arrived()))
    assert source.told.arrived()[-1][1] == 40
