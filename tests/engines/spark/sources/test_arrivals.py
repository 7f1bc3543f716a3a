"""What tells whether something has come to a source."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from slackwater.core.clock import RealClock, VirtualClock
from slackwater.engines.spark.gates.clock import execution_of
from slackwater.engines.spark.sources import arrivals
from slackwater.engines.spark.sources.arrivals import (
    ArrivalsFinder,
    LocalFolder,
    Untold,
    counts_rows,
)
from tests.waiting import eventually

MOUNT = "fs.viewfs.mounttable.there.link./in"


def tick() -> None:
    """Wait until a change has another time than the last one: a few milliseconds."""
    time.sleep(0.02)


def test_a_folder_shows_what_was_added_wherever(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    folder = LocalFolder(str(tmp_path))
    added = tmp_path / "one", below / "two", below / "c" / "three"
    for path in added:
        path.parent.mkdir(exist_ok=True)
        before = folder.mark()
        assert folder.mark() == before
        tick()
        path.write_text("row")
        assert folder.mark() != before


def test_a_folder_whose_time_was_set_back_has_changed(tmp_path: Path) -> None:
    """As by whoever copies a folder with its times."""
    before = tmp_path.stat()
    folder = LocalFolder(str(tmp_path))
    mark = folder.mark()
    tick()
    (tmp_path / "one").write_text("row")
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert folder.mark() != mark


def test_a_folder_that_was_made_within_the_same_tick_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders are made one after the other, and somebody looks in between."""
    (tmp_path / "a").mkdir()
    ticked = tmp_path.stat()
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path: ticked if path == str(tmp_path) else stat(path))
    clock = VirtualClock(ticked.st_ctime)  # a busy machine must not make it two ticks
    folder = LocalFolder(str(tmp_path), clock)
    folder.mark()
    (tmp_path / "b").mkdir()
    mark = folder.mark()
    tick()
    (tmp_path / "b" / "one").write_text("row")
    assert folder.mark() != mark


def wanted(name: str) -> bool:
    return not name.startswith(".")


@pytest.mark.parametrize("later_s", [0.0, 60.0])
def test_new_files_are_named_once(later_s: float, tmp_path: Path) -> None:
    """Also where a folder is so young that a change within the same tick would not show."""
    one, two = tmp_path / "one", tmp_path / "two"
    for path in (one, two):
        path.mkdir()
    (one / "a").write_text("row")
    folder = LocalFolder(str(tmp_path), VirtualClock(time.time() + later_s), wanted)
    assert folder.look() == {str(one): {"a"}}
    assert folder.look() == {}
    tick()
    for name in ("b", "c", ".d"):
        (two / name).write_text("row")
    assert folder.look() == {str(two): {"b", "c"}}
    (two / "b").unlink()
    (one / "a").unlink()
    one.rmdir()
    assert folder.look() == {}
    assert set(folder.folders) == {str(tmp_path), str(two)}, "what is gone is forgotten"


def test_files_of_a_look_that_failed_are_named_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("row")
    folder = LocalFolder(str(tmp_path), VirtualClock(time.time() + 60), wanted)
    monkeypatch.setattr(arrivals, "MOST_FOLDERS", 2)
    with pytest.raises(Untold):
        folder.look()
    monkeypatch.undo()
    assert {*folder.look()} == {str(tmp_path / "one"), str(tmp_path / "two")}


def test_a_folder_of_many_files_is_not_listed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST_LISTED", 1)
    for name in ("a", "b"):
        (tmp_path / name).write_text("row")
    LocalFolder(str(tmp_path)).mark()
    with pytest.raises(Untold, match="has more than 1 files"):
        LocalFolder(str(tmp_path), wanted=wanted).look()


def test_a_folder_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LocalFolder(str(tmp_path / "none")).mark()


@pytest.mark.spark
class Execution:
    """As far as it shows its sources; Scala's list of none is one, too."""

    def __init__(self, *sources: str) -> None:
        self._sources = sources

    def sources(self) -> "Execution":
        return self

    def isEmpty(self) -> bool:
        return not self._sources

    def __str__(self) -> str:
        return f"List({', '.join(self._sources)})"


def test_before_a_query_has_its_sources_nobody_knows_whether_they_count() -> None:
    execution: Any = Execution
    assert counts_rows(execution()) is None
    assert counts_rows(execution("FileStreamSource[file:/in]")) is False
    assert counts_rows(execution("KafkaV2[Subscribe[ads]]")) is True


def test_a_file_system_with_an_address_shows_what_has_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    spark.sparkContext._jsc.hadoopConfiguration().set(MOUNT, folder.as_uri())
    rows = spark.readStream.schema("n long").json("viewfs://there/in")
    query = rows.writeStream.format("noop").start()
    try:
        execution = execution_of(query._jsq)
        eventually(lambda: execution.sources() is not None and query.lastProgress is not None)
        (source,) = ArrivalsFinder(RealClock()).find(execution)
        (before,) = source.mark()
        assert before[0] == "viewfs://there/in"
        (folder / "1.json").write_text('{"n": 1}')
        eventually(lambda: source.mark() != frozenset({before}))
    finally:
        query.stop()
