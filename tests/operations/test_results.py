"""What is looked at before a query of a fleet file starts: its results and its checkpoint."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog, Database
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.sinks import Sink, places_of, sink_of
from slackwater.engines.spark.session.checkpoint_files import MANAGER, suit_checkpoints
from slackwater.operations.fleet_file import FleetFile, QuerySection
from slackwater.operations.launch import Launch

pytestmark = pytest.mark.spark


class Fleet:
    """Does what a fleet does before a start, and starts nothing."""

    gate_kind = "clock"

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.failures: dict[str, str] = {}
        self.started: list[str] = []

    def report_failure(self, name: str, why: str) -> None:
        self.failures[name] = why

    def start(self, writer: DataStreamWriter, *, name: str, **keys: Any) -> None:
        places = places_of(writer, keys.get("table"), self.spark)
        suit_checkpoints(self.spark, places)
        self.started.append(name)


@pytest.fixture
def fleet(spark: SparkSession) -> Iterator[Fleet]:
    before = spark.conf.get(MANAGER)
    yield Fleet(spark)
    spark.conf.set(MANAGER, before)


@pytest.fixture
def start(fleet: Fleet, tmp_path: Path) -> Callable[..., None]:
    """Starts a query with these keys of its section, or a writer of its own."""

    def run(built: DataFrame | DataStreamWriter | None = None, **keys: Any) -> None:
        section = QuerySection(query="json:loads", **keys)
        launch = Launch(FleetFile(queries={"q": section}), tmp_path)
        frame = fleet.spark.readStream.format("rate").load()
        launch.start(fleet, "q", frame if built is None else built)  # type: ignore[arg-type]

    return run


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    spark.sql("DROP TABLE IF EXISTS results")
    spark.sql("CREATE TABLE results (timestamp TIMESTAMP, value LONG) USING parquet")
    yield "results"
    place = spark.sql("DESCRIBE TABLE EXTENDED results").where("col_name = 'Location'").first()
    spark.sql("DROP TABLE results")
    assert place is not None
    shutil.rmtree(place["data_type"].removeprefix("file:"), ignore_errors=True)


def leave_results(folder: Path) -> None:
    (folder / "_spark_metadata").mkdir(parents=True)
    (folder / "_spark_metadata" / "0").write_text("v1")


@pytest.mark.parametrize("key", ["path", "Path"])
@pytest.mark.parametrize("form", ["parquet", "JSON"])
def test_lost_results_are_refused_however_their_place_is_stated(
    start: Callable[..., None], fleet: Fleet, tmp_path: Path, key: str, form: str
) -> None:
    leave_results(tmp_path / "out")
    place = str(tmp_path / "out")
    with pytest.raises(UsageError, match="whose checkpoint is gone"):
        start(format=form, options={key: place})
    with pytest.raises(UsageError, match="whose checkpoint is gone"):
        start(format=form, path="out")
    frame = fleet.spark.readStream.format("rate").load()
    with pytest.raises(UsageError, match="whose checkpoint is gone"):
        start(frame.writeStream.format(form).option(key, place))
    assert not fleet.started
    (tmp_path / "checkpoints" / "q" / "offsets").mkdir()
    (tmp_path / "checkpoints" / "q" / "offsets" / "0").touch()
    start(format=form, path="out")
    assert fleet.started == ["q"]


@pytest.mark.parametrize("keys", [{}, {"format": "parquet"}])
def test_lost_results_in_a_table_of_files_are_refused(
    start: Callable[..., None], fleet: Fleet, table: str, keys: dict[str, str]
) -> None:
    """toTable writes such a table with the file sink."""
    start(table=table, **keys)
    found = fleet.spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name = 'Location'")
    leave_results(Path(found.first()["data_type"].removeprefix("file:")))  # type: ignore[index]
    with pytest.raises(UsageError, match="whose checkpoint is gone"):
        start(table=table, **keys)


def test_a_new_table_comes_into_its_database(spark: SparkSession) -> None:
    writer = spark.readStream.format("rate").load().writeStream.format("orc")
    place = spark.catalog.getDatabase("default").locationUri
    for table in ("none_yet", "default.none_yet"):
        assert sink_of(writer, table, spark) == Sink("orc", None)  # nothing is left of it
        assert place in places_of(writer, table, spark)
    assert sink_of(writer, "nobody.knows.it", spark) == Sink("orc", None)


def test_places_of_other_sinks_are_their_own(start: Callable[..., None], fleet: Fleet) -> None:
    start(format="org.example.Redis", path="redis://host/key")
    assert (fleet.started, fleet.failures) == (["q"], {})


@pytest.mark.parametrize("keys", [{"path": "nowhere://x/y"}, {"checkpoint": "nowhere://x/y"}])
def test_what_cannot_be_reached_stops_one_query_alone(
    start: Callable[..., None], fleet: Fleet, keys: dict[str, str]
) -> None:
    start(**{"format": "parquet", "path": "out"} | keys)
    assert fleet.started == []
    assert "nowhere://x/y cannot be reached" in fleet.failures["q"]


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """An address of a file system that Hadoop knows without any jar."""
    conf, name = spark._jsc.hadoopConfiguration(), tmp_path.name.lower()
    key = f"fs.viewfs.mounttable.{name}.link./files"
    conf.set(key, f"file://{tmp_path}/far")
    (tmp_path / "far").mkdir()
    yield f"viewfs://{name}/files"
    conf.unset(key)


@pytest.mark.parametrize("how", ["checkpoint", "path", "option", "writer", "table", "new table"])
def test_spark_chooses_the_class_once_something_is_written_elsewhere(
    start: Callable[..., None],
    fleet: Fleet,
    elsewhere: str,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The class for this machine's files would keep the first attempt of a batch's state."""
    spark = fleet.spark
    start(format="parquet", path="out")
    start(format="org.example.Redis", path=f"{elsewhere}/out")
    assert spark.conf.get(MANAGER, None) is not None
    if how == "checkpoint":
        start(checkpoint=f"{elsewhere}/q")
    elif how == "path":
        start(format="parquet", path=f"{elsewhere}/out")
    elif how == "option":
        start(format="parquet", options={"path": f"{elsewhere}/out"})
    elif how == "writer":
        frame = spark.readStream.format("rate").load()
        start(frame.writeStream.format("parquet").option("path", f"{elsewhere}/out"))
    elif how == "table":
        spark.sql(f"CREATE TABLE far (v LONG) USING parquet LOCATION '{elsewhere}/table'")
        try:
            start(table="far")
        finally:
            spark.sql("DROP TABLE far")
    else:
        database = Database("far", None, None, f"{elsewhere}/db")
        monkeypatch.setattr(Catalog, "getDatabase", lambda catalog, name: database)
        start(table="far.t")
    assert not fleet.failures
    assert spark.conf.get(MANAGER, None) is None
    assert spark._jsparkSession.sessionState().newHadoopConf().get(MANAGER) is None


def test_a_query_that_was_read_anew_is_looked_at_too(
    fleet: Fleet, tmp_path: Path, elsewhere: str
) -> None:
    """As a worker does, which has its session already."""
    here = QuerySection(query="json:loads")
    launch = Launch(FleetFile(queries={"here": here}), tmp_path)
    frame = fleet.spark.readStream.format("rate").load()
    launch.start(fleet, "here", frame)  # type: ignore[arg-type]
    assert fleet.spark.conf.get(MANAGER, None) is not None
    there = here.model_copy(update={"checkpoint": f"{elsewhere}/there"})
    launch.reread({"here": here, "there": there})
    launch.start(fleet, "there", frame)  # type: ignore[arg-type]
    assert (fleet.started, fleet.failures) == (["here", "there"], {})
    assert fleet.spark.conf.get(MANAGER, None) is None


def test_what_the_file_names_stays(fleet: Fleet, tmp_path: Path, elsewhere: str) -> None:
    mine = "org.example.Manager"
    fleet.spark.conf.set(MANAGER, mine)
    section = QuerySection(query="json:loads", checkpoint=f"{elsewhere}/q")
    file = FleetFile(spark={"conf": {MANAGER: mine}}, queries={"q": section})  # type: ignore[arg-type]
    frame = fleet.spark.readStream.format("rate").load()
    Launch(file, tmp_path).start(fleet, "q", frame)  # type: ignore[arg-type]
    assert (fleet.started, fleet.failures) == (["q"], {})
    assert fleet.spark.conf.get(MANAGER) == mine
