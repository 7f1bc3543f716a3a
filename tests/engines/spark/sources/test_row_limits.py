"""Row limits find the sources of a query by themselves, and are shared among streams."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.gates.source import gate
from slackwater.engines.spark.sources.base import SourceOptions
from slackwater.engines.spark.sources.directives import DirectivesFile, read_directives
from slackwater.engines.spark.sources.row_limits import RowLimits, find_limited, split_rows
from slackwater.spark import feed

YSB = "slackwater_bench.workloads.ysb_events:YsbEvents"
BACKLOGS = st.lists(st.integers(0, 1000), min_size=1, max_size=8)


def limit_in(path: Path) -> int | None:
    return read_directives(path).at(time.time()).rows


def test_a_source_of_two_queries_has_nobody_s_limit(tmp_path: Path) -> None:
    limits, own, shared = RowLimits(), tmp_path / "own.json", tmp_path / "shared.json"
    limits.link("a", [own, shared])
    limits.set_rows("a", 5)
    assert limit_in(shared) == 5
    elsewhere = RowLimits()  # of a gate in another process
    elsewhere.link("a", [own, shared])
    limits.link("b", [shared])
    limits.link("c", [shared])
    for query in ("a", "b", "c"):
        limits.set_rows(query, 7)
        elsewhere.set_rows(query, 7)
        assert limit_in(shared) is None
    assert limit_in(own) == 7
    limits.forget("b")
    limits.link("c", [shared])
    limits.set_rows("c", 8)
    assert limit_in(shared) is None, "another may go on reading it"
    limits.clear()
    assert not own.exists()


def test_a_source_that_its_query_has_left_is_another_s(tmp_path: Path) -> None:
    limits, file = RowLimits(), tmp_path / "told.json"
    limits.link("a", [file])
    limits.set_rows("a", 5)
    limits.forget("a")
    assert not file.exists()
    limits.link("b", [file])
    limits.set_rows("b", 6)
    assert limit_in(file) == 6
    limits.forget("b", goes_on=True)  # as plain Spark, and nobody may limit it
    limits.link("c", [file])
    limits.set_rows("c", 7)
    assert limit_in(file) is None


def test_a_limit_that_was_granted_before_its_files_were_known_holds(tmp_path: Path) -> None:
    limits, file = RowLimits(), tmp_path / "told.json"
    limits.set_rows("a", 5)
    limits.link("a", [file])
    assert limit_in(file) == 5
    limits.link("a", [file])  # started again
    assert limit_in(file) == 5


def test_a_limit_that_could_not_be_lifted_is_lifted_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: DirectivesFile, **parts: object) -> None:
        raise OSError("no space left")

    limits, path = RowLimits(), tmp_path / "told.json"
    limits.link("a", [path])
    limits.set_rows("a", 5)
    with monkeypatch.context() as patch:
        patch.setattr(DirectivesFile, "update", full)
        with pytest.raises(OSError, match="no space"):
            limits.set_rows("a", None)
    assert limit_in(path) == 5
    limits.set_rows("a", None)
    assert limit_in(path) is None


def test_a_limit_that_cannot_be_lifted_does_not_keep_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, broken, path = RowLimits(), tmp_path / "broken.json", tmp_path / "told.json"
    update = DirectivesFile.update

    def full(file: DirectivesFile, **parts: object) -> None:
        if file.path == broken:
            raise OSError("no space left")
        update(file, **parts)

    for query, its in (("a", broken), ("b", path)):
        limits.link(query, [its])
        limits.set_rows(query, 5)
    monkeypatch.setattr(DirectivesFile, "update", full)
    limits.clear()
    assert (limit_in(broken), limit_in(path)) == (5, None)


def test_nothing_is_read_for_once_but_each_time_anew(tmp_path: Path) -> None:
    limits, file = RowLimits(), tmp_path / "told.json"
    limits.link("a", [file])
    limits.set_rows("a", 0)
    assert limit_in(file) == 0
    file.write_text(json.dumps({"rows": 0, "until": time.time() - 0.1}))
    assert limit_in(file) is None
    limits.set_rows("a", 0)  # as before, but its end is a new one
    assert limit_in(file) == 0
    limits.set_rows("a", None)
    assert not file.exists()


def test_without_a_place_for_files_there_are_no_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(tmp_path / "file" / "below"))
    assert SourceOptions().with_directives() == SourceOptions()
    own = SourceOptions(knob="k.json").with_directives()
    assert own == SourceOptions(knob=str(Path("k.json").absolute()))
    with pytest.raises(OSError, match="Not a directory"):
        SourceOptions(sheddable=True).with_directives()


@pytest.mark.spark
def test_sources_are_found_but_not_those_with_a_knob_of_their_user_s(
    spark: SparkSession, tmp_path: Path
) -> None:
    ours, other = feed(spark, YSB), feed(spark, YSB)
    assert len(find_limited(ours)) == 1
    assert len(find_limited(ours.unionAll(other))) == 2
    (tmp_path / "rows.json").write_text('{"a": 1}')
    files = spark.readStream.schema("a int").json(str(tmp_path))
    assert find_limited(files.groupBy("a").agg(F.count("*"))) == ()
    own = feed(spark, YSB, knob=tmp_path / "k.json")
    assert find_limited(own) == ()
    limited = find_limited(ours)
    gated = gate(spark, ours, query="q", socket=Path("s"), limited=limited, max_wait_s=1.0)
    assert find_limited(gated) == limited, "a gate is no source that is told something"


@given(rows=st.integers(1, 3000), backlogs=BACKLOGS, turn=st.integers(0, 10**6))
def test_all_rows_are_shared_and_no_stream_gets_more_than_it_has(
    rows: int, backlogs: list[int], turn: int
) -> None:
    shares = split_rows(rows, backlogs, turn)
    assert sum(shares) == min(rows, sum(backlogs))
    assert all(0 <= share <= backlog for share, backlog in zip(shares, backlogs, strict=True))


@given(rows=st.integers(1, 3000), backlogs=BACKLOGS)
def test_shares_are_in_proportion(rows: int, backlogs: list[int]) -> None:
    fair = [min(rows / max(sum(backlogs), 1), 1) * backlog for backlog in backlogs]
    for share, expected in zip(split_rows(rows, backlogs, 0), fair, strict=True):
        assert abs(share - expected) <= len(backlogs)


def test_a_limit_of_one_row_serves_every_stream() -> None:
    """The turn is the number of rows read so far, so it moves on by one each time."""
    served = {tuple(split_rows(1, [900, 900, 2], turn)) for turn in range(3)}
    assert served == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}
