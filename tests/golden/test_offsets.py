"""Offsets in checkpoints: what was written before must be read after, and written the same."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType

from slackwater.engines.spark.checkpoints.offset_log import OffsetEntry
from slackwater.engines.spark.sources import base
from slackwater.engines.spark.sources.directives import DirectivesFile
from slackwater.engines.spark.sources.feed import FeedReader
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.engines.spark.sources.log.kafka_log import KafkaPartition
from slackwater.engines.spark.sources.log.log import Position, Stream
from slackwater.engines.spark.sources.log.offsets import LogOffset
from slackwater.engines.spark.sources.log.redis_log import RedisStream
from slackwater.engines.spark.sources.log.segment_log import SegmentOptions, append
from slackwater.engines.spark.sources.query_log import SegmentReader
from slackwater.quality.rates import ShedPlan
from slackwater.sampling.grid import Grid
from slackwater.sampling.plan import CellPlan, Plan
from slackwater.traffic import Traffic
from tests.engines.spark.sources.log.memory_log import SCHEMA, MemoryOptions, MemoryReader
from tests.golden.comparing import compare_lines

START_S = 1_700_000_000.0
ALL = ReadAllAvailable()

# Seconds after the start, and the limit then.
STEPS = [(1.0, ReadMaxRows(7)), (2.0, ALL), (2.0, ALL), (4.5, ReadMaxRows(90)), (9.0, ALL)]

KINDS = ["plain", "sampled", "shed"]
ENTRIES = [
    'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}\n{"logOffset":7}',
    'v1\n{}\n-\n{"t": 5, "n": 3}',
    'v2\n{"batchWatermarkMs":0}\n0:{"logOffset":7}\n1:-',
]

SetClock = Callable[[float], None]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Sets the time that sources see, in seconds after the start."""

    def set_to(at_s: float) -> None:
        monkeypatch.setattr("time.time", lambda: START_S + at_s)
        monkeypatch.setattr("time.time_ns", lambda: round((START_S + at_s) * 1e6) * 1000)

    monkeypatch.setattr(base, "reply_arrivals", lambda path, count: None)  # a thread without end
    set_to(0.5)
    return set_to


@dataclass
class FixedLog:
    """Knows how much of its streams has come, and no rows."""

    streams: dict[str, Stream]

    def look(self) -> dict[str, Stream]:
        return self.streams

    def ordinal(self, position: Position) -> int:
        return int(position[1] if isinstance(position, list) else position)

    def arrived_us(self, position: Position) -> int | None:
        return int(position[0].split("-")[0]) * 1000 if isinstance(position, list) else None

    def advance(self, name: str, position: Position, rows: int) -> Position:
        if not isinstance(position, list):
            return position + rows
        count = position[1] + rows
        return [f"{1_700_000_000_000 + 10 * count}-0", count]


class FixedReader(MemoryReader):
    """Reads one of them."""

    log: FixedLog

    def _open(self, schema: pa.Schema) -> Any:
        return self.log


def redis_streams(rows: int) -> dict[str, Stream]:
    last_id = f"{1_700_000_000_000 + 10 * rows}-0"
    return {"ads": RedisStream(rows, rows, "1700000000010-0", last_id)}


def kafka_partitions(rows: int) -> dict[str, Stream]:
    return {"ads-0": KafkaPartition(3, 3 + rows), "ads-1": KafkaPartition(0, 2 * rows)}


LOGS = {"redis": redis_streams, "kafka": kafka_partitions}


def planned(reader: Any, set_clock: SetClock, grow: Callable[[float], None]) -> list[str]:
    """All offsets of a run, as Spark writes them to a checkpoint."""
    offset = reader.initialOffset()
    lines = [f"initial {json.dumps(offset)}"]
    for at_s, limit in STEPS:
        set_clock(at_s)
        grow(at_s)
        offset = json.loads(json.dumps(reader.latestOffset(offset, limit)))
        lines.append(f"planned {json.dumps(offset)}")
        lines.append(f"latest {json.dumps(reader.reportLatestOffset())}")
        if "at" in offset:
            assert LogOffset.parse(offset).json() == offset
    return lines


def told(kind: str, folder: Path) -> dict[str, Any]:
    """What a source is told by files: nothing, what to sample, or what to shed."""
    file = DirectivesFile(folder / "told.json")
    if kind == "sampled":
        cell = CellPlan(500_000, (0.5, 0.25), (0.75,), (0.125,), (10.0, 5000.0))
        file.sample(Plan(Grid(2_000_000, 1_000_000), cell, 3_000_000))
        return {"sampled": True, "directives": str(file.path)}
    if kind == "shed":
        file.shed(ShedPlan(0.75, share=0.25, rows=100, least=0.125))
        return {"sheddable": True, "directives": str(file.path)}
    return {}


@pytest.mark.parametrize("kind", KINDS)
def test_feed(kind: str, set_clock: SetClock, tmp_path: Path) -> None:
    traffic = Traffic(start_s=START_S, rate="100", partitions=2, seed=3)
    reader = FeedReader(
        FeedOptions(traffic=traffic, generator="not:Needed", **told(kind, tmp_path)), SCHEMA
    )
    compare_lines(f"offsets/feed-{kind}.txt", planned(reader, set_clock, lambda at_s: None))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("server", LOGS)
def test_servers(server: str, kind: str, set_clock: SetClock, tmp_path: Path) -> None:
    def grow(at_s: float) -> None:
        log.streams = LOGS[server](round(100 * at_s))

    log = FixedLog(LOGS[server](50))
    reader = FixedReader(MemoryOptions(event_time="at", **told(kind, tmp_path)), SCHEMA)
    reader.log = log
    compare_lines(f"offsets/{server}-{kind}.txt", planned(reader, set_clock, grow))


@pytest.mark.parametrize("kind", ["plain", "shed"])
def test_log_between_queries(
    kind: str, set_clock: SetClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("between")
    folder.mkdir()

    def grow(at_s: float) -> None:
        before = set(folder.rglob("*"))
        rows = pa.table({"number": range(40)}, schema=pa.schema([("number", pa.int64())]))
        append(folder, round(10 * at_s), rows)
        for path in set(folder.rglob("*")) - before:
            os.utime(path, (START_S + at_s, START_S + at_s))

    grow(0.0)
    options = SegmentOptions(folders=("between",), instance="1/2", **told(kind, tmp_path))
    reader = SegmentReader(options, StructType([StructField("number", LongType())]))
    compare_lines(f"offsets/between-{kind}.txt", planned(reader, set_clock, grow))


def test_conversion_of_the_offset_log() -> None:
    lines = []
    for text in ENTRIES:
        entry = OffsetEntry.parse(text)
        gated = entry.with_gate()
        assert gated.gated
        assert gated.without_gate().text() == entry.text() == text
        lines += [*text.split("\n"), "with the gate:", *gated.text().split("\n"), ""]
    compare_lines("offsets/conversion.txt", lines)
