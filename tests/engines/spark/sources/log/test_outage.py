"""A server that goes away between telling how far it has come and the batch that reads so far."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from slackwater.engines.spark.plans.event_time import TracedWatermark
from slackwater.engines.spark.sources.directives import DirectivesFile
from slackwater.engines.spark.sources.frontier import NoFrontier, source_frontier
from slackwater.engines.spark.sources.log import log as logs
from slackwater.engines.spark.sources.log.segment_log import SegmentOptions, append
from slackwater.engines.spark.sources.query_log import LogSource, SegmentReader

SCHEMA = StructType([StructField("id", LongType()), StructField("at", TimestampType())])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "schema.json").write_text(SCHEMA.json())
    return folder


def add(folder: Path, number: int, at_us: int) -> None:
    at = pa.array([at_us], pa.timestamp("us", "UTC"))
    append(folder, number, pa.table({"id": pa.array([1], pa.int64()), "at": at}))


def options(folder: Path) -> SegmentOptions:
    return SegmentOptions(folders=(str(folder),), directives=str(folder.parent / "told"))


def away_for(tries: int, look: Callable[[], Any]) -> Callable[[], Any]:
    left = iter(range(tries))

    def try_to_look() -> Any:
        if next(left, None) is not None:
            raise logs.ServerAway("away")
        return look()

    return try_to_look


@pytest.mark.parametrize("told", [False, True])
def test_only_a_batch_that_was_told_how_far_to_read_waits_for_the_server(
    folder: Path, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "RETRY_EVERY_S", 0.0)
    reader = SegmentReader(options(folder), SCHEMA)
    add(folder, 0, 1_000_000)
    read = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    add(folder, 1, 9_000_000)
    if told:
        DirectivesFile(folder.parent / "told").reach(reader.planned_us(read) + 1)
    monkeypatch.setattr(reader._log, "look", away_for(3, reader._log.look))
    end = reader.latestOffset(read, ReadAllAvailable())
    assert (end["n"] > read["n"]) == told


def traced(texts: dict[str, str]) -> TracedWatermark:
    """A watermark on the column of a log."""
    source: Any = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getSimpleName=lambda: "StreamingRelationV2"),
        extraOptions=lambda: SimpleNamespace(asCaseSensitiveMap=lambda: texts),
        schema=lambda: SimpleNamespace(json=SCHEMA.json),
    )
    return TracedWatermark("a", 0, source, LogSource.FORMAT, column="at")


def execution(read: dict[str, Any]) -> Any:
    """A query that has read so far."""
    offset = SimpleNamespace(json=lambda: json.dumps(read))
    found = SimpleNamespace(isDefined=lambda: True, get=lambda: offset)
    return SimpleNamespace(
        sources=lambda: SimpleNamespace(size=lambda: 1, apply=lambda place: "log"),
        availableOffsets=lambda: SimpleNamespace(get=lambda source: found),
    )


def test_an_answer_is_told_to_the_source_before_anybody_goes_by_it(folder: Path) -> None:
    reader = SegmentReader(options(folder), SCHEMA)
    add(folder, 0, 1_000_000)
    read = reader.initialOffset()
    frontier = source_frontier(traced(options(folder).texts()), execution(read))
    assert frontier.newest_us() == 1_000_000
    assert DirectivesFile(folder.parent / "told").read().reach_us > reader.planned_us(read)


def test_a_source_that_cannot_be_told_has_no_frontier(folder: Path) -> None:
    with pytest.raises(NoFrontier, match="no file by which it could be told"):
        source_frontier(traced(SegmentOptions(folders=(str(folder),)).texts()), execution({}))
