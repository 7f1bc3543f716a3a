"""What all readers of logs have in common, on a log in memory."""

import json
import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.sources.directives import DirectivesFile
from slackwater.engines.spark.sources.log import log as log_module
from slackwater.engines.spark.sources.log import reader as reader_module
from slackwater.engines.spark.sources.log.log import DataGone
from slackwater.engines.spark.sources.sampled_rows import PULSES
from slackwater.sampling.grid import Grid
from slackwater.sampling.plan import CellPlan, Plan
from tests.engines.spark.reading import with_sample
from tests.engines.spark.sources.log.memory_log import (
    SCHEMA,
    MemoryLog,
    MemoryOptions,
    MemoryReader,
    MemoryRow,
)

ALL = ReadAllAvailable()
Json = dict[str, Any]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(us=1_000_000)
    monkeypatch.setattr(reader_module, "now_us", lambda: clock.us)
    return clock


def reader_of(log: MemoryLog, schema: StructType = SCHEMA, **options: Any) -> MemoryReader:
    MemoryReader.logs["here"] = log
    return MemoryReader(MemoryOptions(**options), schema)


def numbered(count: int, first: int = 0) -> list[MemoryRow]:
    return [MemoryRow(number) for number in range(first, first + count)]


def through_spark(value: Any) -> Any:
    """As Spark carries it."""
    return json.loads(json.dumps(value))


def read(reader: MemoryReader, start: Json, end: Json) -> list[dict[str, Any]]:
    """What Spark would get, with every object sent through a pickle as Spark does."""
    reader = pickle.loads(pickle.dumps(reader))
    batches = [
        batch
        for partition in reader.partitions(through_spark(start), through_spark(end))
        for batch in reader.read(pickle.loads(pickle.dumps(partition)))
    ]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def numbers(rows: list[dict[str, Any]]) -> Counter[int]:
    return Counter(row["number"] for row in rows)


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4),
    limits=st.lists(st.integers(1, 50), min_size=1, max_size=8),
)
@settings(max_examples=50, deadline=None)
def test_any_limits_give_every_row_once(sizes: list[int], limits: list[int]) -> None:
    log = MemoryLog({f"s{n}": numbered(size, 100 * n) for n, size in enumerate(sizes)})
    reader = reader_of(log)
    start, seen = reader.initialOffset(), Counter[int]()
    for limit in (*limits, 10**6):
        end = reader.latestOffset(start, ReadMaxRows(limit))
        rows = read(reader, start, end)
        assert len(rows) == end["n"] - start["n"] <= limit
        assert rows == read(reader, start, end), "a replay differs"
        seen += numbers(rows)
        start = end
    assert seen == Counter(row.number for rows in log.streams.values() for row in rows)
    assert reader.latestOffset(start, ALL) is start, "nothing new must not be a batch"


def test_the_backlog_is_what_a_limit_left(clock: SimpleNamespace) -> None:
    reader = reader_of(MemoryLog({"a": numbered(30), "b": numbered(10)}))
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(8))
    assert end["at"] == {"a": 6, "b": 2}
    latest = reader.reportLatestOffset()
    assert latest is not None
    assert latest["n"] - end["n"] == 32


def test_latest_begins_after_what_is_there(clock: SimpleNamespace) -> None:
    log = MemoryLog({"a": numbered(5)})
    reader = reader_of(log, start="latest")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) is start
    log.streams["a"] += numbered(2, 5)
    assert numbers(read(reader, start, reader.latestOffset(start, ALL))) == {5: 1, 6: 1}


def test_a_first_batch_that_was_not_committed_is_replayed(clock: SimpleNamespace) -> None:
    """Spark then asks for the initial offset again, and ``latest`` has moved on meanwhile."""
    log = MemoryLog({"a": numbered(5)})
    reader = reader_of(log, start="latest")
    start = reader.initialOffset()
    log.streams["a"] += numbered(2, 5)
    end = reader.latestOffset(start, ALL)
    log.streams["a"] += numbered(9, 7)
    again = reader_of(log, start="latest")
    assert numbers(read(again, again.initialOffset(), end)) == {5: 1, 6: 1}


def test_a_new_stream_is_read_from_its_beginning(clock: SimpleNamespace) -> None:
    log = MemoryLog({"a": numbered(5)})
    reader = reader_of(log, start="latest")
    start = reader.initialOffset()
    log.streams["b"] = numbered(3, 50)
    end = reader.latestOffset(start, ALL)
    assert numbers(read(reader, start, end)) == {50: 1, 51: 1, 52: 1}
    assert reader.latestOffset(end, ALL) is end


def test_available_now_stops_where_the_log_ended(clock: SimpleNamespace) -> None:
    log = MemoryLog({"a": numbered(10)})
    reader = reader_of(log)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    log.streams["a"] += numbered(10, 10)
    log.streams["b"] = numbered(10, 20)
    end = reader.latestOffset(start, ReadMaxRows(7))
    end = reader.latestOffset(end, ReadMaxRows(7))
    assert end["at"] == {"a": 10}
    assert reader.latestOffset(end, ALL) is end


def test_rows_that_are_gone_are_told(clock: SimpleNamespace) -> None:
    log = MemoryLog({"a": numbered(10)})
    reader = reader_of(log)
    start = reader.latestOffset(reader.initialOffset(), ReadMaxRows(4))
    log.trimmed["a"] = 4
    assert reader.latestOffset(start, ALL)["n"] == 10, "what was read may go"
    log.trimmed["a"] = 7
    with pytest.raises(DataGone, match="3 rows of a were removed before they were read"):
        reader.latestOffset(start, ALL)
    tolerant = reader_of(log, fail_on_data_loss=False)
    end = tolerant.latestOffset(start, ALL)
    assert numbers(read(tolerant, start, end)) == {7: 1, 8: 1, 9: 1}


def test_a_stream_of_the_checkpoint_must_be_named(clock: SimpleNamespace) -> None:
    reader = reader_of(MemoryLog({"a": numbered(3), "b": numbered(3)}))
    start = reader.latestOffset(reader.initialOffset(), ALL)
    with pytest.raises(UsageError, match="the checkpoint also reads b"):
        reader_of(MemoryLog({"a": numbered(5)})).latestOffset(start, ALL)


def test_a_stream_stands_still_while_its_server_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(s=100.0)
    stand_in = SimpleNamespace(
        monotonic=lambda: now.s, sleep=lambda s: setattr(now, "s", now.s + s)
    )
    monkeypatch.setattr(log_module, "time", stand_in)
    log = MemoryLog({"a": numbered(3)})
    reader = reader_of(log, retry_s=5)
    start = reader.initialOffset()
    known = reader.reportLatestOffset()
    log.is_away = True
    assert reader.latestOffset(start, ALL) is start
    assert reader.reportLatestOffset() == known
    now.s += 4
    assert reader.latestOffset(start, ALL) is start
    log.is_away = False
    assert reader.latestOffset(start, ALL)["n"] == 3
    log.is_away = True
    assert reader.latestOffset(start, ALL) is start, "the limit counts from the last answer"
    now.s += 5
    with pytest.raises(SlackwaterError, match=r"did not answer for 5 s \(test\): start it") as told:
        reader.latestOffset(start, ALL)
    assert "\n" not in str(told.value)


# -- ceiling and sample ---------------------------------------------------------------------------

SECOND = 1_000_000
GRID = Grid(2 * SECOND, 2 * SECOND)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return tmp_path / "told.json"


def sampled_reader(log: MemoryLog, plan: Path, **options: Any) -> MemoryReader:
    return reader_of(
        log, with_sample(SCHEMA), sampled=True, directives=str(plan), event_time="at", **options
    )


@given(
    delays=st.lists(st.integers(-SECOND, 3 * SECOND), min_size=5, max_size=60),
    waits=st.lists(st.integers(0, 2 * SECOND), min_size=1, max_size=4),
    limits=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    tells_arrivals=st.booleans(),
)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_ceilings_withhold_rows_and_lose_none(
    tmp_path: Path, delays: list[int], waits: list[int], limits: list[int], tells_arrivals: bool
) -> None:
    """Ten rows a second, some of which claim to come from the future."""
    log = MemoryLog({"a": [], "b": []}, tells_arrivals=tells_arrivals)
    events_us = [50 * SECOND + number * SECOND // 10 for number in range(len(delays))]
    coming = [
        MemoryRow(number, event_us, max(event_us + delay, 49 * SECOND))
        for number, (event_us, delay) in enumerate(zip(events_us, delays, strict=True))
    ]
    coming.sort(key=lambda row: row.arrival_us)
    reader = sampled_reader(log, tmp_path / "told.json")
    clock = SimpleNamespace(us=49 * SECOND)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader_module, "now_us", lambda: clock.us)
        start, seen, step = reader.initialOffset(), Counter[int](), 0
        while clock.us < 80 * SECOND:
            clock.us += 500_000
            while coming and coming[0].arrival_us <= clock.us:
                row = coming.pop(0)
                log.streams["ab"[row.number % 2]].append(row)
            cell = CellPlan(wait_us=waits[step % len(waits)])
            DirectivesFile(tmp_path / "told.json").sample(Plan(GRID, cell, 0))
            end = reader.latestOffset(start, ReadMaxRows(limits[step % len(limits)]))
            rows = read(reader, start, end)
            assert rows == read(reader, start, end), "a replay differs"
            for row in rows:
                assert events_us[row["number"]] < end["s"]["ceiling"]
            seen += numbers(rows)
            start, step = end, step + 1
    assert seen == Counter(range(len(delays)))
    assert "held" not in start, "nothing is read again for ever"


def test_a_row_is_withheld_until_the_ceiling_rises(clock: SimpleNamespace, plan: Path) -> None:
    DirectivesFile(plan).sample(Plan(GRID, CellPlan(wait_us=500_000), 0))
    log = MemoryLog({"a": [MemoryRow(1, 1_900_000, 2_000_000), MemoryRow(2, 2_100_000, 2_150_000)]})
    reader = sampled_reader(log, plan)
    start = reader.initialOffset()
    clock.us = 2_200_000
    end = reader.latestOffset(start, ALL)
    assert end["s"]["ceiling"] == 2_000_000
    assert numbers(read(reader, start, end)) == {1: 1}
    clock.us = 2_400_000
    assert reader.latestOffset(end, ALL) is end
    clock.us = 2_500_000
    last = reader.latestOffset(end, ALL)
    assert numbers(read(reader, end, last)) == {2: 1}


def test_a_limit_keeps_no_row_out_of_a_window_that_closes(
    clock: SimpleNamespace, plan: Path
) -> None:
    """The log does not tell when rows arrived, so the window would not know of them."""
    DirectivesFile(plan).sample(Plan(GRID, CellPlan(), 0))
    log = MemoryLog({"a": [MemoryRow(n, 1_000_000 + n, 1_100_000) for n in range(6)]})
    reader = sampled_reader(log, plan)
    start = reader.initialOffset()
    clock.us = 2_500_000
    end = reader.latestOffset(start, ReadMaxRows(2))
    assert end["s"]["ceiling"] == 4_000_000
    assert len(read(reader, start, end)) == 6


def test_weights_make_up_for_the_rows_left_out(clock: SimpleNamespace, plan: Path) -> None:
    DirectivesFile(plan).sample(Plan(GRID, CellPlan(wait_us=SECOND, rates=(0.25,)), 0))
    log = MemoryLog({"a": [MemoryRow(n, 10_000_000 + n, 10_500_000 + n) for n in range(20_000)]})
    reader = sampled_reader(log, plan)
    start = reader.initialOffset()
    clock.us = 11_900_000
    rows = read(reader, start, reader.latestOffset(start, ALL))
    assert 4_700 < len(rows) < 5_300
    pulses = [row["sample"] for row in rows if row["sample"]["delay"] is None]
    assert 0 < len(pulses) <= PULSES
    assert {tuple(each["weights"]) for each in pulses} == {(0.0,)}
    sampled = [row["sample"] for row in rows if row["sample"]["delay"] is not None]
    assert {tuple(each["weights"]) for each in sampled} == {(4.0,)}
    assert {each["delay"] for each in sampled} == {0.5}


def test_without_a_plan_a_sampled_source_gives_all_rows(clock: SimpleNamespace, plan: Path) -> None:
    log = MemoryLog({"a": [MemoryRow(n, 10_000_000) for n in range(5)] + [MemoryRow(5, None)]})
    reader = sampled_reader(log, plan)
    start = reader.initialOffset()
    rows = read(reader, start, reader.latestOffset(start, ALL))
    assert numbers(rows) == dict.fromkeys(range(5), 1), "no event time, no window"
    assert {row["sample"]["rate"] for row in rows} == {1.0}


def test_a_checkpoint_of_a_sampled_source_is_not_read_unsampled(
    clock: SimpleNamespace, plan: Path
) -> None:
    DirectivesFile(plan).sample(Plan(GRID, CellPlan(), 0))
    log = MemoryLog({"a": numbered(5)})
    reader = sampled_reader(log, plan)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    with pytest.raises(UsageError, match="sampled=True"):
        reader_of(log).latestOffset(end, ALL)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"start": "soon"}, "start is 'soon'; it may be one of earliest, latest"),
        ({"timestamps": "weeks"}, "timestamps"),
        ({"malformed": "drop"}, "malformed"),
        ({"rows_per_batch": 0}, "rows_per_batch"),
        ({"retry_s": -1.0}, "retry_s"),
        ({"sampled": True}, "event time"),
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        MemoryOptions(**wrong)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"stert": "latest"}, "did you mean 'start'"),
        ({"rows_per_batch": "few"}, "rows_per_batch is wrong"),
        ({"fail_on_data_loss": "perhaps"}, "neither true nor false"),
    ],
)
def test_options_given_to_spark_directly_are_checked_too(
    texts: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        MemoryOptions.from_texts(texts)


def test_options_survive_the_way_through_spark() -> None:
    options = MemoryOptions(
        start="latest", rows_per_batch=5, event_time="at", sampled=True, retry_s=1.5
    )
    options = replace(options, fail_on_data_loss=False, timestamps="ms")
    assert MemoryOptions.from_texts(options.texts()) == options


def test_the_newest_rows_are_seen_however_small_the_sample(
    clock: SimpleNamespace, plan: Path
) -> None:
    """So that the watermark follows the stream and not the sample."""
    DirectivesFile(plan).sample(Plan(GRID, CellPlan(wait_us=SECOND, rates=(0.001,)), 0))
    log = MemoryLog({"a": [MemoryRow(n, 10_000_000 + n, 10_500_000) for n in range(20_000)]})
    reader = sampled_reader(log, plan)
    start = reader.initialOffset()
    clock.us = 11_900_000
    rows = read(reader, start, reader.latestOffset(start, ALL))
    newest = sorted(rows, key=lambda row: row["number"])[-PULSES:]
    assert [row["number"] for row in newest] == list(range(20_000 - PULSES, 20_000))
    assert len(rows) < 100
