"""How far a folder of parquet files has come: what is told, when it is not, and what follows."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.gates.clock import execution_of
from slackwater.engines.spark.gates.watermark import why_two_batches
from slackwater.engines.spark.sources import arrivals, file_frontier, remote_frontier
from slackwater.engines.spark.sources.file_frontier import ParquetFolder, newest_in_us
from slackwater.engines.spark.sources.remote_frontier import (
    FrontierLost,
    FrontierUnknown,
    RemoteFrontier,
    source_at,
)
from slackwater.spark import Fleet
from tests.engines.spark.gates.scripted_fleet import Script
from tests.engines.spark.gates.test_exactness import check, raised, random_stream, run
from tests.waiting import eventually

S = 1_000_000  # microseconds
UTC_US = pa.timestamp("us", tz="UTC")
Why = Callable[[DataFrame], str | None]


def any_file(path: str, changed_ms: int) -> bool:
    return True


def no_file(path: str, changed_ms: int) -> bool:
    return False


def put(path: Path, *times_s: float | None, kind: Any = UTC_US, **how: Any) -> Path:
    """Write a file with these event times, seen only when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    us = [None if s is None else round(S * s) for s in times_s]
    times = pa.array(us, pa.timestamp("us", tz=getattr(kind, "tz", None))).cast(kind)
    hidden = path.with_name(f".{path.name}")
    pq.write_table(pa.table({"n": range(len(us)), "at": times}), hidden, **how)
    return hidden.rename(path)


# -- one file -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "how", "told"),
    [
        (UTC_US, {}, 9 * S),
        (UTC_US, {"row_group_size": 1}, 9 * S),
        (UTC_US, {"write_statistics": False}, 9 * S),
        (pa.timestamp("ms", tz="UTC"), {}, 9 * S),
        (pa.timestamp("ms", tz="UTC"), {"write_statistics": False}, 9 * S),
        (UTC_US, {"use_deprecated_int96_timestamps": True}, 9 * S),
    ],
)
def test_the_newest_time_of_a_file(
    kind: Any, how: dict[str, Any], told: int, tmp_path: Path
) -> None:
    path = put(tmp_path / "f", 3.0, 9.0, None, 5.0, kind=kind, **how)
    assert newest_in_us(str(path), "at") == told


@pytest.mark.parametrize(
    ("kind", "how"),
    [
        (pa.timestamp("us"), {}),  # which time that is follows from the session
        (pa.timestamp("us"), {"write_statistics": False}),
        (pa.timestamp("ns", tz="UTC"), {"version": "2.6"}),  # Spark does not read them
        (pa.int64(), {}),
    ],
)
def test_what_is_no_instant_does_not_tell(kind: Any, how: dict[str, Any], tmp_path: Path) -> None:
    path = str(put(tmp_path / "f", 3.0, kind=kind, **how))
    with pytest.raises(FrontierUnknown, match=r"at of .* is no timestamp with UTC"):
        newest_in_us(path, "at")
    assert newest_in_us(str(put(tmp_path / "empty", kind=kind)), "at") is None


@pytest.mark.parametrize("how", [{}, {"use_deprecated_int96_timestamps": True}])
def test_a_file_without_times_has_no_newest(how: dict[str, Any], tmp_path: Path) -> None:
    path = str(put(tmp_path / "f", None, None, **how))
    assert newest_in_us(path, "at") is None
    assert newest_in_us(str(put(tmp_path / "none", **how)), "at") is None
    with pytest.raises(FrontierUnknown, match="has no column At"):  # Spark may find it, by any case
        newest_in_us(path, "At")


def test_a_large_file_without_statistics_does_not_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_frontier, "MOST_ROWS", 2)
    int96 = {"use_deprecated_int96_timestamps": True}
    assert newest_in_us(str(put(tmp_path / "2", 1, 2, **int96)), "at") == 2 * S
    assert newest_in_us(str(put(tmp_path / "noted", 1, 2, 3)), "at") == 3 * S
    with pytest.raises(FrontierUnknown, match="no statistics, and more than 2 rows"):
        newest_in_us(str(put(tmp_path / "3", 1, 2, 3, **int96)), "at")


def test_times_of_old_calendars_do_not_tell(tmp_path: Path) -> None:
    """Which instant they are depends on the writer; in nanoseconds they would wrap around."""
    year_1500 = datetime(1500, 1, 1, tzinfo=UTC).timestamp()
    for name, how in (("a", {}), ("b", {"use_deprecated_int96_timestamps": True})):
        with pytest.raises(FrontierUnknown, match="nothing after 1900"):
            newest_in_us(str(put(tmp_path / name, year_1500, **how)), "at")


# -- a folder -------------------------------------------------------------------------------------


def test_what_has_come_since_is_told_once(tmp_path: Path) -> None:
    folder = ParquetFolder(str(tmp_path), "at")
    assert folder.newest_us(any_file) is None
    put(tmp_path / "1", 5.0)
    put(tmp_path / "2", 3.0)
    assert folder.newest_us(any_file) == 5 * S
    assert folder.newest_us(any_file) is None
    put(tmp_path / "3", 4.0)
    assert folder.newest_us(any_file) == 4 * S


def test_only_files_that_the_next_batch_reads_count(tmp_path: Path) -> None:
    asked = {}

    def not_the_first(path: str, changed_ms: int) -> bool:
        asked[Path(path).name] = changed_ms
        return not path.endswith("1")

    folder = ParquetFolder(str(tmp_path), "at")
    put(tmp_path / "1", 9.0)
    os.utime(tmp_path / "1", (7.0, 7.0625))
    put(tmp_path / "2", 3.0)
    assert folder.newest_us(not_the_first) == 3 * S
    assert asked["1"] == 7062


@pytest.mark.parametrize("name", ["_hidden", ".hidden", "half._COPYING_", "sub/f", "_a=1/f"])
def test_what_spark_does_not_read_tells_nothing(name: str, tmp_path: Path) -> None:
    folder = ParquetFolder(str(tmp_path), "at")
    put(tmp_path / name, 9.0)
    assert folder.newest_us(any_file) is None


def test_files_of_partitions_count(tmp_path: Path) -> None:
    folder = ParquetFolder(str(tmp_path), "at")
    put(tmp_path / "a=1" / "b=1" / "f", 5.0)
    assert folder.newest_us(any_file) == 5 * S
    put(tmp_path / "a=1" / "b=1" / "g", 6.0)
    put(tmp_path / "a=2" / "b=1" / "f", 7.0)
    assert folder.newest_us(any_file) == 7 * S


def test_files_beside_partitions_do_not_tell(tmp_path: Path) -> None:
    """Spark marks them as read, and leaves their rows out; not where partitions are empty."""
    folder = ParquetFolder(str(tmp_path), "at")
    put(tmp_path / "f", 9.0)
    put(tmp_path / "a=1" / "f", 5.0)
    with pytest.raises(FrontierUnknown, match="beside partitions"):
        folder.newest_us(any_file)
    assert folder.newest_us(no_file) == 5 * S
    put(tmp_path / "g", 9.0)
    with pytest.raises(FrontierUnknown, match="beside partitions"):
        folder.newest_us(any_file)
    (tmp_path / "below" / "x" / "a=1").mkdir(parents=True)
    below = ParquetFolder(str(tmp_path / "below"), "at")
    put(tmp_path / "below" / "f", 9.0)
    with pytest.raises(FrontierUnknown, match="beside partitions"):
        below.newest_us(any_file)


def test_a_folder_that_gets_partitions_after_its_files_told_is_refused(tmp_path: Path) -> None:
    """Their rows have counted, and the batch leaves them out."""
    folder = ParquetFolder(str(tmp_path), "at")
    put(tmp_path / "f", 9.0)
    assert folder.newest_us(any_file) == 9 * S
    put(tmp_path / "a=1" / "f", 5.0)
    for _ in range(2):
        with pytest.raises(FrontierLost, match="had files, and has partitions now"):
            folder.newest_us(any_file)


def test_an_event_time_that_is_in_the_names_of_folders_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "AT=1" / "f", 5.0)
    with pytest.raises(FrontierLost, match="in the names of folders"):
        ParquetFolder(str(tmp_path), "at").newest_us(any_file)


def test_the_log_of_a_sink_is_refused_whenever_it_comes(tmp_path: Path) -> None:
    folder = ParquetFolder(str(tmp_path), "at")
    put(tmp_path / "1", 5.0)
    assert folder.newest_us(any_file) == 5 * S
    (tmp_path / "_spark_metadata").mkdir()
    with pytest.raises(FrontierLost, match="was written by a query of Spark's"):
        folder.newest_us(any_file)


def test_a_file_that_is_half_written_is_looked_at_again(tmp_path: Path) -> None:
    put(tmp_path / ".whole", 5.0)
    whole = (tmp_path / ".whole").read_bytes()
    folder = ParquetFolder(str(tmp_path), "at")
    (tmp_path / "f").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FrontierUnknown, match="cannot be read"):
        folder.newest_us(any_file)
    (tmp_path / "f").write_bytes(whole)
    assert folder.newest_us(any_file) == 5 * S
    (tmp_path / "g").write_bytes(b"never")
    with pytest.raises(FrontierUnknown, match="cannot be read"):
        folder.newest_us(any_file)
    for _ in range(2):
        assert folder.newest_us(no_file) is None, "Spark has read it, whatever it is"
    assert folder.newest_us(any_file) is None


def test_a_file_that_does_not_tell_leaves_it_unknown_until_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody may wait for what nobody can tell; what others told is not lost over it."""
    monkeypatch.setattr(remote_frontier, "ANSWER_S", 30.0)
    folder, read = ParquetFolder(str(tmp_path), "at"), set[str]()
    frontier = RemoteFrontier(lambda: folder.newest_us(lambda path, ms: path not in read))
    put(tmp_path / "f", 5.0)
    assert frontier.newest_us() == 5 * S
    for name in ("c", "d"):
        dumb = str(put(tmp_path / name, 7.0, kind=pa.timestamp("us")))
        put(tmp_path / f"{name}-told", 6.0)
        assert [frontier.newest_us() for _ in range(2)] == [None, None]
        read.add(dumb)
        assert [frontier.newest_us() for _ in range(2)] == [6 * S, 6 * S]
    frontier.close()
    assert caplog.text.count("no timestamp with UTC") == 1, "each batch may bring such a file"


def test_a_file_is_read_once_the_source_has_said_so_twice(tmp_path: Path) -> None:
    """Its answer may come from another thread's half-done work."""
    folder = ParquetFolder(str(tmp_path), "at")
    put(tmp_path / "f", 5.0)
    assert folder.newest_us(no_file) is None
    assert folder.newest_us(any_file) == 5 * S
    put(tmp_path / "g", 6.0)
    assert [folder.newest_us(no_file) for _ in range(2)] == [None, None]
    assert folder.newest_us(any_file) is None


def test_too_many_folders_or_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST_FOLDERS", 3)
    monkeypatch.setattr(arrivals, "MOST_LISTED", 2)
    folder = ParquetFolder(str(tmp_path), "at")
    for name in ("a=1/f", "a=1/g", "a=1/.g.crc", "a=2/f"):
        put(tmp_path / name, 5.0)
    assert folder.newest_us(any_file) == 5 * S
    put(tmp_path / "a=1" / "h", 5.0)
    with pytest.raises(FrontierLost, match="a=1 has more than 2 files"):
        folder.newest_us(any_file)
    (tmp_path / "a=1" / "h").unlink()
    for n in range(3):
        (tmp_path / f"a={n}").mkdir(exist_ok=True)
    with pytest.raises(FrontierLost, match="has more than 3 folders"):
        folder.newest_us(any_file)


def test_a_file_that_is_gone_before_it_was_looked_at_tells_nothing(tmp_path: Path) -> None:
    folder = ParquetFolder(str(tmp_path), "at")
    put(tmp_path / "1", 5.0)
    put(tmp_path / "2", 3.0)

    def removes(path: str, changed_ms: int) -> bool:
        (tmp_path / "1").unlink(missing_ok=True)
        return True

    assert folder.newest_us(removes) == 3 * S
    assert folder.newest_us(any_file) is None


def test_what_more_files_tell_is_unknown_until_all_were_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_frontier, "MOST_FILES", 2)
    for n in range(5):
        put(tmp_path / str(n), 9.0 - n)
    folder = ParquetFolder(str(tmp_path), "at")
    for _ in range(2):
        with pytest.raises(FrontierUnknown, match="more new files than are looked at"):
            folder.newest_us(any_file)
    assert folder.newest_us(any_file) == 9 * S
    assert folder.newest_us(any_file) is None


def test_of_many_files_some_are_asked_for_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of a folder have been read before; who was said to be read only once holds nobody up."""
    monkeypatch.setattr(file_frontier, "MOST_ASKED", 2)
    asked: list[str] = []

    def all_but_one(path: str, changed_ms: int) -> bool:
        asked.append(path)
        return path.endswith("new")

    for name in ("1", "2", "new", "3"):
        put(tmp_path / name, 5.0)
    folder = ParquetFolder(str(tmp_path), "at")
    with pytest.raises(FrontierUnknown, match="more new files than are looked at"):
        folder.newest_us(all_but_one)
    assert folder.newest_us(all_but_one) == 5 * S
    for _ in range(3):
        assert folder.newest_us(all_but_one) is None
    assert len(asked) == 7, "twice each, but for the new one"


# -- on Spark -------------------------------------------------------------------------------------


def stream(
    spark: SparkSession, path: Path | str, schema: str = "n long, at timestamp", **o: Any
) -> Any:
    return spark.readStream.schema(schema).options(**o).format("parquet").load(str(path))


def windows(rows: DataFrame, delay: str = "0 seconds") -> DataFrame:
    return rows.withWatermark("at", delay).groupBy(F.window("at", "1 second")).count()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, None),
        ({"latestFirst": "false", "mergeSchema": "true"}, None),
        ({"maxFilesPerTrigger": 1}, "may leave rows behind (maxfilespertrigger)"),
        ({"maxBytesPerTrigger": "1g"}, "may leave rows behind (maxbytespertrigger)"),
        ({"latestFirst": "true"}, "may not read all of its files (latestfirst)"),
        ({"maxFileAge": "1d"}, "may not read all of its files (maxfileage)"),
        ({"pathGlobFilter": "*.parquet"}, "may not read all of its files (pathglobfilter)"),
        ({"modifiedAfter": "2020-01-01T00:00:00"}, "may not read all of its files (modifiedafter)"),
        ({"recursiveFileLookup": "true"}, "not read all of its files (recursivefilelookup)"),
        ({"fileNameOnly": "true"}, "may not read all of its files (filenameonly)"),
        ({"cleanSource": "delete"}, "may not read all of its files (cleansource)"),
        ({"ignoreCorruptFiles": "true"}, "may not read all of its files (ignorecorruptfiles)"),
        ({"ignoredPathSegmentRegex": "false"}, "all of its files (ignoredpathsegmentregex)"),
    ],
)
def test_options_that_keep_files_back_keep_two_batches(
    options: dict[str, Any], reason: str | None, spark: SparkSession, tmp_path: Path
) -> None:
    why = why_two_batches(windows(stream(spark, tmp_path, **options)))
    assert why == reason if reason is None else reason in str(why)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (
            lambda s, p: s.readStream.schema("at timestamp").json(str(p)),
            "files of the format json do not tell how far they have come, only parquet does",
        ),
        (
            lambda s, p: stream(s, f"{p}/{{a,b}}"),
            "only of files in one folder of this machine it is known how far they have come",
        ),
        (
            lambda s, p: stream(s, p / "a", "at struct<start: timestamp, end: timestamp>"),
            "at is a struct<start:timestamp,end:timestamp>, not a timestamp",
        ),
        (lambda s, p: stream(s, p).where("n > 0"), "rows are filtered before the watermark"),
        (
            lambda s, p: stream(s, p, "s struct<at: timestamp>").select("s.at"),
            "the event time is computed",
        ),
        (
            lambda s, p: stream(s, p / "a", "`s.at` timestamp").withColumnRenamed("s.at", "at"),
            "there is a dot in the name of the event time s.at",
        ),
        (lambda s, p: stream(s, p / "parts"), "the event time at is in the names of folders"),
        (
            lambda s, p: stream(s, p / "sunk"),
            "the folder was written by a query of Spark's, whose log says which files are read",
        ),
    ],
)
def test_files_that_do_not_tell_keep_two_batches(
    build: Any, reason: str, spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("a", "b", "sunk/_spark_metadata"):
        (tmp_path / name).mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), put(tmp_path / "parts" / "at=2020-01-01" / "f", 1.0))
    assert why_two_batches(build(spark, tmp_path).withWatermark("at", "1 second")) == reason


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("ignoreCorruptFiles", "true", "spark.sql.files.ignoreCorruptFiles is on"),
        (
            "ignoredPathSegmentRegex",
            "^[._x]",
            "may not read all of its files (spark.sql.files.ignoredPathSegmentRegex)",
        ),
    ],
)
def test_a_setting_for_which_files_are_left_out_keeps_two_batches(
    setting: str, value: str, reason: str, spark: SparkSession, tmp_path: Path
) -> None:
    spark.conf.set(f"spark.sql.files.{setting}", value)
    try:
        why = why_two_batches(windows(stream(spark, tmp_path)))
    finally:
        spark.conf.unset(f"spark.sql.files.{setting}")
    assert reason in str(why)


def test_the_names_that_are_left_out_are_sparks_own(spark: SparkSession) -> None:
    known = spark.sql(f"set {file_frontier._IGNORED}").collect()[0].value
    assert known in ("<undefined>", file_frontier._IGNORED_BY_DEFAULT)  # not known before 4.3


def test_the_source_itself_says_which_files_are_new(spark: SparkSession, tmp_path: Path) -> None:
    """Also those with names that an address must spell otherwise; of the last week only."""
    folder = tmp_path / "in here"
    now_s = time.time()
    for name in ("a b%.parquet", "c é+#?&.parquet"):
        put(folder / "p=x y" / name, now_s)
    query = stream(spark, folder).writeStream.format("noop").start()
    try:
        query.processAllAvailable()
        execution = execution_of(query._jsq)
        source = source_at(execution, 0, 1)
        assert source_at(execution, 0, 2) is None
        will_read = file_frontier._unread(source)
        now_ms = int(1000 * now_s)
        assert query.lastProgress.numInputRows == 2
        for read in (folder / "p=x y").glob("[!.]*.parquet"):
            assert not will_read(str(read), now_ms), read
        assert will_read(str(folder / "new"), now_ms)
        assert will_read(str(folder / "old"), now_ms - 6 * 86_400_000)
        assert not will_read(str(folder / "older"), now_ms - 8 * 86_400_000)
    finally:
        query.stop()


def test_sparks_own_files_tell_what_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    """In each of the kinds of timestamps that it writes, as the session has it."""
    rows = spark.sql(
        "select timestamp '2024-01-31 12:00:00.123456 UTC' as at union all select null"
    )
    expected_us = 1_706_702_400_123_456
    for kind in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"):
        spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
        try:
            rows.coalesce(1).write.parquet(str(tmp_path / kind))
        finally:
            spark.conf.unset("spark.sql.parquet.outputTimestampType")
        (file,) = (tmp_path / kind).glob("*.parquet")
        read = spark.read.parquet(str(tmp_path / kind)).selectExpr("max(unix_micros(at)) m")
        told = newest_in_us(str(file), "at")
        assert told == read.collect()[0].m
        assert told == (expected_us if kind != "TIMESTAMP_MILLIS" else expected_us // 1000 * 1000)


def test_one_batch_closes_a_window_over_files(
    spark: SparkSession,
    make_fleet: Callable[..., Fleet],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The batch that emits is the one that read past the window's end; late rows are counted.

    A file may come between the question and the batch, now and then.
    """
    monkeypatch.setattr(remote_frontier, "ANSWER_S", 1.0)
    folder, base_s = tmp_path / "in", int(time.time()) - 1000
    folder.mkdir()
    rows = windows(stream(spark, folder), "1500 milliseconds")
    fleet = make_fleet("klink")
    query = fleet.start(rows.writeStream.format("memory"), name="files")
    assert fleet.status().queries[0].why_two_batches is None
    read_too = 0
    for second in range(24):
        at_s = base_s + second
        late_s = at_s - 0.5  # of the window before
        put(folder / f"{second}.parquet", late_s, at_s, at_s + 0.6)
        if second < 2:
            continue
        # The newest row is 0.6 s into this second: less the delay, the window before the last ends.
        eventually(lambda ends=second - 1: spark.table("files").count() > ends, 60)  # type: ignore[misc]
        emitting = [p for p in query.recentProgress if p.sink.numOutputRows > 0]
        read_too = sum(p.numInputRows > 0 for p in emitting)
        if second >= 5 and read_too >= 3:
            break
    assert fleet.status().queries[0].rows_dropped_by_watermark == 0
    fleet.stop_query("files")
    counts = [row["count"] for row in spark.table("files").orderBy("window").collect()]
    assert counts == [1] + [3] * (len(counts) - 1)
    assert read_too >= 3, "a batch of its own had to emit"


def test_a_folder_that_cannot_tell_any_more_is_left_to_spark(
    spark: SparkSession,
    make_fleet: Callable[..., Fleet],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The status says so, and windows go on to come out."""
    monkeypatch.setattr(arrivals, "MOST_LISTED", 4)
    folder, base_s = tmp_path / "in", int(time.time()) - 1000
    folder.mkdir()
    fleet = make_fleet("klink")
    rows = windows(stream(spark, folder)).writeStream.format("memory")
    fleet.start(rows, name="many")
    for second in range(8):
        put(folder / f"{second}.parquet", base_s + second)
        if second:
            eventually(lambda ends=second: spark.table("many").count() >= ends, 60)  # type: ignore[misc]
    why = fleet.status().queries[0].why_two_batches
    assert why == f"{folder} has more than 4 files"


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_nothing_is_lost_or_doubled_with_files(tmp_path: Path) -> None:
    streams = [random_stream(f"q{n}", 700 + n, "files") for n in range(3)]
    run(tmp_path, Script(streams, 1, die_at="write", die_after=6))
    assert run(tmp_path, Script(streams, 2)) == 0, (tmp_path / "log").read_text()[-3000:]
    check(tmp_path, streams)
    assert raised(tmp_path)
