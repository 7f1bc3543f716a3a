"""Row limits find the sources of a query by themselves."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.sources.knobs import Knobs, find_knobs, knob_option
from slackwater.engines.spark.sources.row_limits import read_knob
from slackwater.spark import feed

YSB = "slackwater_bench.workloads.ysb_events:YsbEvents"


def test_a_source_of_two_queries_has_nobody_s_limit(tmp_path: Path) -> None:
    knobs, own, shared = Knobs(), tmp_path / "own.json", tmp_path / "shared.json"
    knobs.link("a", [own, shared])
    knobs.set_rows("a", 5)
    assert json.loads(shared.read_text())["rows"] == 5
    elsewhere = Knobs()  # of a gate in another process
    elsewhere.link("a", [own, shared])
    knobs.link("b", [shared])
    knobs.link("c", [shared])
    for query in ("a", "b", "c"):
        knobs.set_rows(query, 7)
        elsewhere.set_rows(query, 7)
        assert not shared.exists()
    assert read_knob(str(own)) == 7
    knobs.forget("b")
    knobs.link("c", [shared])
    knobs.set_rows("c", 8)
    assert not shared.exists(), "another may go on reading it"
    knobs.clear()
    assert not own.exists()


def test_a_source_that_its_query_has_left_is_another_s(tmp_path: Path) -> None:
    knobs, file = Knobs(), tmp_path / "knob.json"
    knobs.link("a", [file])
    knobs.set_rows("a", 5)
    knobs.forget("a")
    assert not file.exists()
    knobs.link("b", [file])
    knobs.set_rows("b", 6)
    assert read_knob(str(file)) == 6
    knobs.forget("b", goes_on=True)  # as plain Spark, and nobody may limit it
    knobs.link("c", [file])
    knobs.set_rows("c", 7)
    assert not file.exists()


def test_a_limit_that_was_granted_before_its_files_were_known_holds(tmp_path: Path) -> None:
    knobs, file = Knobs(), tmp_path / "knob.json"
    knobs.set_rows("a", 5)
    knobs.link("a", [file])
    assert read_knob(str(file)) == 5
    knobs.link("a", [file])  # started again
    assert read_knob(str(file)) == 5


def test_without_a_place_for_files_there_are_no_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(tmp_path / "file" / "below"))
    assert knob_option(None) == {}
    assert knob_option("k.json") == {"knob": str(Path("k.json").absolute())}


@pytest.mark.spark
def test_sources_are_found_but_not_those_with_a_knob_of_their_user_s(
    spark: SparkSession, tmp_path: Path
) -> None:
    ours, other = feed(spark, YSB), feed(spark, YSB)
    assert len(find_knobs(ours)) == 1
    assert len(find_knobs(ours.unionAll(other))) == 2
    (tmp_path / "rows.json").write_text('{"a": 1}')
    files = spark.readStream.schema("a int").json(str(tmp_path))
    assert find_knobs(files.groupBy("a").agg(F.count("*"))) == ()
    own = feed(spark, YSB, knob=tmp_path / "k.json")
    assert find_knobs(own) == ()
