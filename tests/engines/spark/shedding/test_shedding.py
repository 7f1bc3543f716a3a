"""Rows that are shed: how many, which, and the same ones again."""

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadAllAvailable

from slackwater.core.errors import UsageError
from slackwater.engines.spark.shedding.filter import sheddable
from slackwater.engines.spark.shedding.shedders import find_shedders, refuse_shared
from slackwater.engines.spark.sources.directives import DirectivesFile, read_directives
from slackwater.engines.spark.sources.feed import FeedReader, feed
from slackwater.engines.spark.sources.log import reader as reader_module
from slackwater.engines.spark.sources.shed_rows import (
    Shedding,
    luck_by_key,
    parse_predicate,
)
from slackwater.quality.rates import NO_SHEDDING, ShedPlan, rates_for, spared_share
from tests.engines.spark.reading import read
from tests.engines.spark.sources.log.memory_log import SCHEMA as LOG_SCHEMA
from tests.engines.spark.sources.log.memory_log import (
    MemoryLog,
    MemoryOptions,
    MemoryReader,
    MemoryRow,
)
from tests.engines.spark.sources.test_feed import OPTIONS, SCHEMA, YSB, clock
from tests.waiting import eventually

ALL = ReadAllAvailable()
__all__ = ["clock"]


def shed_feed(path: Path, shedding: Shedding | None = None) -> FeedReader:
    shedding = shedding or Shedding()
    options = replace(
        OPTIONS,
        directives=str(path),
        sheddable=True,
        shed_by=shedding.by,
        spare=shedding.spare,
    )
    return FeedReader(options, SCHEMA)


def rows_of(reader: FeedReader) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    start = reader.initialOffset()
    end = json.loads(json.dumps(reader.latestOffset(start, ALL)))
    return read(reader, start, end), end


@pytest.mark.usefixtures("clock")
def test_a_feed_keeps_the_part_it_was_told_to_and_the_offset_says_so(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    DirectivesFile(path).shed(ShedPlan(0.3))
    rows, end = rows_of(shed_feed(path))
    assert end["k"] == [1.0, 0.3]
    assert len(rows) / end["n"] == pytest.approx(0.3, abs=0.03)


@pytest.mark.usefixtures("clock")
def test_what_a_smaller_rate_keeps_a_larger_keeps_as_well(tmp_path: Path) -> None:
    found = []
    for rate in (0.2, 0.6):
        DirectivesFile(tmp_path / "told.json").shed(ShedPlan(rate))
        rows, _ = rows_of(shed_feed(tmp_path / "told.json"))
        found.append({row["user_id"] + str(row["event_time"]) for row in rows})
    assert found[0] < found[1]


@pytest.mark.usefixtures("clock")
def test_a_burst_is_shed_at_once_down_to_the_minimum_and_the_rest_waits(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    DirectivesFile(path).shed(ShedPlan(rows=1000))
    rows, end = rows_of(shed_feed(path))
    assert end["n"] > 4000
    assert len(rows) == pytest.approx(1000, abs=100)
    DirectivesFile(path).shed(ShedPlan(rows=1000, least=0.5))
    rows, end = rows_of(shed_feed(path))
    assert end["n"] == pytest.approx(2000, abs=10)
    assert len(rows) == pytest.approx(1000, abs=100)


@pytest.mark.usefixtures("clock")
def test_rows_of_a_key_go_together(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    whole = Counter(row["ad_id"] for row in rows_of(shed_feed(path))[0])
    DirectivesFile(path).shed(ShedPlan(0.5))
    rows, _ = rows_of(shed_feed(path, Shedding(by=("ad_id",))))
    kept = Counter(row["ad_id"] for row in rows)
    assert 0 < len(kept) < len(whole)
    assert all(whole[ad] == count for ad, count in kept.items())


@pytest.mark.usefixtures("clock")
def test_spared_rows_are_dropped_last(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    whole = Counter(row["event_type"] for row in rows_of(shed_feed(path))[0])
    DirectivesFile(path).shed(ShedPlan(0.4, share=1 / 3))
    rows, _ = rows_of(shed_feed(path, Shedding(spare="event_type = 'purchase'")))
    kept = Counter(row["event_type"] for row in rows)
    assert kept["purchase"] == whole["purchase"]
    assert kept["view"] < 0.2 * whole["view"]


def test_the_same_keys_are_kept_by_every_source() -> None:
    there = luck_by_key([pa.array(["a", "b", "c"])])
    elsewhere = luck_by_key([pa.array(["c", "x", "a"])])
    assert (there[0], there[2]) == (elsewhere[2], elsewhere[0])


def test_rates_that_nobody_renews_shed_nothing(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    DirectivesFile(path).shed(ShedPlan(0.5), lasts_s=-1)
    assert read_directives(path).at(time.time()).shedding == NO_SHEDDING


@given(rate=st.floats(0.05, 0.95), by_key=st.booleans())
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_log_sheds_the_same_rows_at_every_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rate: float, by_key: bool
) -> None:
    monkeypatch.setattr(reader_module, "now_us", lambda: 1_000_000)
    MemoryReader.logs["here"] = MemoryLog({"s": [MemoryRow(number) for number in range(2000)]})
    path = tmp_path / "told.json"
    DirectivesFile(path).shed(ShedPlan(rate))
    options = MemoryOptions(
        directives=str(path), sheddable=True, shed_by=("number",) if by_key else ()
    )
    reader = MemoryReader(options, LOG_SCHEMA)
    start = reader.initialOffset()
    end = json.loads(json.dumps(reader.latestOffset(start, ALL)))
    first = read(reader, start, end)  # type: ignore[arg-type]
    assert len(first) / 2000 == pytest.approx(rate, abs=0.05)
    DirectivesFile(path).shed(ShedPlan(1 - rate))
    assert read(MemoryReader(options, LOG_SCHEMA), start, end) == first  # type: ignore[arg-type]


@given(st.floats(0, 1), st.floats(0, 1))
def test_rates_come_to_the_accuracy_that_is_wanted(accuracy: float, share: float) -> None:
    rates = rates_for(accuracy, share)
    reached = share * rates.spared + (1 - share) * rates.others
    assert reached == pytest.approx(accuracy, abs=1e-6) or share >= 1
    told = spared_share(rates, reached)
    assert told is None or told == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize("text", ["amount", "amount >= ", "amount >= many", "sum(x) > 3"])
def test_a_predicate_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_predicate(text)


def test_sampled_rows_are_not_shed_as_well() -> None:
    with pytest.raises(UsageError, match="either sampled or sheddable"):
        replace(OPTIONS, sampled=True, sheddable=True)


# -- inside Spark -------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_column_that_is_not_there_is_told(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="shedding looks at 'nobody'"):
        feed(spark, YSB, shed_by=["nobody"])


@pytest.mark.spark
def test_shedders_are_found_in_the_plan_and_shared_ones_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    ours = feed(spark, YSB, sheddable=True)
    other = sheddable(spark.readStream.format("rate").load())
    found = find_shedders(ours.groupBy("ad_id").count())
    assert (len(found.files), len(found.properties)) == (1, 0)
    assert len(find_shedders(other.select("value")).properties) == 1
    files = find_shedders(sheddable(spark.readStream.schema("a int").json(str(tmp_path))))
    assert (len(files.properties), files.others) == (1, True)
    with pytest.raises(UsageError, match="make one for each query"):
        refuse_shared("a", found, [("b", find_shedders(ours))])


@pytest.mark.spark
def test_any_source_is_shed_while_it_runs_and_what_came_through_is_counted(
    spark: SparkSession,
) -> None:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 2000).load()
    marked = sheddable(rows.withWatermark("timestamp", "1 second"), spare="value % 10 = 0")
    shedders = find_shedders(marked)
    query = marked.select(F.col("value")).writeStream.format("noop").start()
    try:
        eventually(lambda: _delivered(query, shedders) == 1.0, 60)
        shedders.put(ShedPlan(0.28, share=0.1))
        eventually(lambda: abs((_delivered(query, shedders) or 0) - 0.28) < 0.05, 60)
        shedders.put(NO_SHEDDING)
        eventually(lambda: _delivered(query, shedders) == 1.0, 60)
    finally:
        query.stop()


def _delivered(query: Any, shedders: Any) -> float | None:
    last = query.lastProgress
    counted = shedders.count(json.loads(last.json)) if last is not None else None
    return None if counted is None or counted.seen < 50 else counted.kept / counted.seen


@pytest.mark.spark
def test_a_feed_inside_spark_tells_what_it_kept(spark: SparkSession) -> None:
    rows = feed(spark, YSB, rate="1000", start=time.time() - 5, sheddable=True)
    shedders = find_shedders(rows)
    shedders.put(ShedPlan(0.4))
    query = rows.writeStream.format("noop").start()
    try:
        eventually(lambda: abs((_delivered(query, shedders) or 0) - 0.4) < 0.1, 60)
    finally:
        query.stop()
