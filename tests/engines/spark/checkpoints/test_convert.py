"""Checkpoints change form on real Spark: plain, gated, plain again; nothing is lost or doubled."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints import convert
from slackwater.engines.spark.checkpoints.convert import adopt, release
from slackwater.engines.spark.checkpoints.files import hadoop_folder
from slackwater.engines.spark.checkpoints.offset_log import OffsetEntry

pytestmark = pytest.mark.spark

Query = Callable[[SparkSession, Path], DataFrame]

FILES_PER_PART = 2
GATE = "slackwater-gate-in-test"


def gate_class() -> type:
    """A gate that grants a few triggers; local, so that Spark ships it by value to its workers."""
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):
        def __init__(self, grants: int) -> None:
            self.left = grants

        def initialOffset(self) -> dict:
            return {"g": 0}

        def latestOffset(self, start: dict, limit: object) -> dict:
            granted = 1 if self.left > 0 else 0
            self.left -= granted
            return {"g": start["g"] + granted}

        def partitions(self, start: dict, end: dict) -> list:
            return [InputPartition(0)]

        def read(self, partition: InputPartition) -> Iterator[tuple]:
            return iter(())

        def commit(self, end: dict) -> None:
            pass

    class Gate(DataSource):
        @classmethod
        def name(cls) -> str:
            return GATE

        def streamReader(self, schema: object) -> Reader:
            return Reader(int(self.options["grants"]))

    return Gate


def gated(spark: SparkSession, df: DataFrame, grants: int = 3) -> DataFrame:
    spark.dataSource.register(gate_class())
    gate = spark.readStream.format(GATE).schema(df.schema).option("grants", str(grants)).load()
    return gate.union(df)


def add_part(folder: Path, part: int) -> None:
    """Write the next input files of both streams, in order of event time."""
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(part * FILES_PER_PART, (part + 1) * FILES_PER_PART):
            rows = [{"t": 1_767_225_600 + number * 4 + i, "k": i % 3} for i in range(4)]
            path = folder / name / f"{number:03}.json"
            path.write_text("\n".join(json.dumps(row) for row in rows))
            os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def read(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    rows = spark.readStream.schema("t long, k int").option("maxFilesPerTrigger", 1)
    timed = rows.json(str(folder / name)).select(F.timestamp_seconds("t").alias(f"t_{name}"), "k")
    return timed.withWatermark(f"t_{name}", "2 seconds")


def passed_through(spark: SparkSession, folder: Path) -> DataFrame:
    return read(spark, folder, "a").withColumn("twice", F.col("k") * 2)


def windowed(spark: SparkSession, folder: Path) -> DataFrame:
    return read(spark, folder, "a").groupBy(F.window("t_a", "3 seconds"), "k").count()


def windowed_in_one_partition(spark: SparkSession, folder: Path) -> DataFrame:
    return read(spark, folder, "a").coalesce(1).groupBy(F.window("t_a", "3 seconds")).count()


def windowed_twice(spark: SparkSession, folder: Path) -> DataFrame:
    first = windowed(spark, folder)
    return first.groupBy(F.window(F.window_time("window"), "6 seconds")).agg(F.sum("count"))


def joined(spark: SparkSession, folder: Path) -> DataFrame:
    left = read(spark, folder, "a").withColumnRenamed("k", "left_k")
    near = "left_k = k and t_b >= t_a and t_b <= t_a + interval 3 seconds"
    return left.join(read(spark, folder, "b"), F.expr(near), "leftOuter")


def without_duplicates(spark: SparkSession, folder: Path) -> DataFrame:
    both = read(spark, folder, "a").unionByName(
        read(spark, folder, "b").withColumnRenamed("t_b", "t_a")
    )
    return both.dropDuplicates(["t_a", "k"])


QUERIES: list[Query] = [
    passed_through,
    windowed,
    windowed_in_one_partition,
    windowed_twice,
    joined,
    without_duplicates,
]


def run(df: DataFrame, out: Path, checkpoint: Path) -> None:
    writer = df.writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
    query = writer.outputMode("append").start(str(out))
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def rows(spark: SparkSession, out: Path) -> Counter:
    return Counter(spark.read.parquet(str(out)).collect())


def truth(spark: SparkSession, query: Query, tmp_path: Path, parts: int) -> Counter:
    """What one plain query makes of the same files, part by part and never stopped."""
    inputs, out = tmp_path / "truth-in", tmp_path / "truth-out"
    add_part(inputs, 0)
    writer = query(spark, inputs).writeStream.format("parquet").outputMode("append")
    running = writer.option("checkpointLocation", str(tmp_path / "truth-ck")).start(str(out))
    try:
        running.processAllAvailable()
        for part in range(1, parts):
            add_part(inputs, part)
            running.processAllAvailable()
    finally:
        running.stop()
    return rows(spark, out)


def entries(checkpoint: Path) -> dict[int, OffsetEntry]:
    logs = (path for path in (checkpoint / "offsets").iterdir() if path.name.isdecimal())
    return {int(path.name): OffsetEntry.parse(path.read_text()) for path in logs}


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its content."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def content(folder: Path) -> dict[str, bytes]:
    """A folder's files without checksums, which a conversion may leave out."""
    return {name: data for name, data in snapshot(folder).items() if not name.endswith(".crc")}


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[Callable[[dict[str, str]], None]]:
    """Set configuration for one test."""
    changed: dict[str, str | None] = {}

    def apply(values: dict[str, str]) -> None:
        for key, value in values.items():
            changed[key] = spark.conf.get(key, None)
            spark.conf.set(key, value)

    yield apply
    for key, value in changed.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def there_and_back(spark: SparkSession, query: Query, tmp_path: Path) -> None:
    inputs, out = tmp_path / "in", tmp_path / "out"
    plain, held, freed = (tmp_path / name for name in ("plain", "held", "freed"))

    add_part(inputs, 0)
    run(query(spark, inputs), out, plain)
    before = snapshot(plain)
    report = adopt(plain, held)
    assert report.uncommitted_batch is None
    assert snapshot(plain) == before
    assert {entry.gated for entry in entries(held).values()} == {True}

    add_part(inputs, 1)
    run(gated(spark, query(spark, inputs)), out, held)
    assert release(held, freed).inputs == report.inputs
    assert {entry.gated for entry in entries(freed).values()} == {False}

    add_part(inputs, 2)
    run(query(spark, inputs), out, freed)
    expected = truth(spark, query, tmp_path, parts=3)
    assert expected
    assert rows(spark, out) == expected


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.__name__)
def test_resumes_exactly(spark: SparkSession, query: Query, tmp_path: Path) -> None:
    there_and_back(spark, query, tmp_path)


@pytest.mark.parametrize(
    ("values", "offsets", "commits"),
    [
        ({"spark.sql.streaming.offsetLog.formatVersion": "2"}, "v2", "v1"),
        (
            {
                "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution."
                "streaming.state.RocksDBStateStoreProvider",
                "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
            },
            "v1",
            "v2",
        ),
        (
            {
                "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution."
                "streaming.checkpointing.FileContextBasedCheckpointFileManager"
            },
            "v1",
            "v1",
        ),
    ],
    ids=["offset log version 2", "RocksDB with state ids", "file contexts"],
)
def test_resumes_exactly_with_other_formats(
    spark: SparkSession,
    settings: Callable,
    values: dict[str, str],
    offsets: str,
    commits: str,
    tmp_path: Path,
) -> None:
    settings(values)
    there_and_back(spark, joined, tmp_path)
    versions = {
        log: (tmp_path / "held" / log / "0").read_text().split("\n")[0]
        for log in ("offsets", "commits")
    }
    assert versions == {"offsets": offsets, "commits": commits}


@pytest.fixture(scope="module")
def checkpoint(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain checkpoint of two sources, for tests that do not resume it."""
    folder = tmp_path_factory.mktemp("kept")
    add_part(folder / "in", 0)
    run(joined(spark, folder / "in"), folder / "out", folder / "plain")
    return folder / "plain"


def test_spark_refuses_what_was_not_converted(
    spark: SparkSession, checkpoint: Path, tmp_path: Path
) -> None:
    """The reason for all this; should Spark ever take it, the conversion can go."""
    shutil.copytree(checkpoint, tmp_path / "plain")
    inputs = checkpoint.parent / "in"
    with pytest.raises(StreamingQueryException, match="sources"):
        run(gated(spark, joined(spark, inputs)), tmp_path / "out", tmp_path / "plain")


def test_release_undoes_adopt(checkpoint: Path, tmp_path: Path) -> None:
    adopt(checkpoint, tmp_path / "held")
    release(tmp_path / "held", tmp_path / "freed")
    assert content(tmp_path / "freed") == content(checkpoint)


def test_rewritten_files_keep_no_checksum(checkpoint: Path, tmp_path: Path) -> None:
    original = tmp_path / "original"
    shutil.copytree(checkpoint, original)
    (original / "offsets" / "0.crc").write_text("a checksum as Spark's own manager writes it")
    for log in ("offsets", "sources/0"):
        (original / log / ".0.crc").write_text("a checksum as Hadoop's local file system writes it")
    adopt(original, tmp_path / "held")
    held = {path.name for path in (tmp_path / "held" / "offsets").iterdir()}
    assert not {name for name in held if name.endswith(".crc")}
    assert (tmp_path / "held" / "sources" / "1" / ".0.crc").exists()  # moved, still true


def test_conversion_alone_causes_no_batch(
    spark: SparkSession, checkpoint: Path, tmp_path: Path
) -> None:
    """The gate's offset is spelled as the gate spells it: Spark sees nothing new."""
    adopt(checkpoint, tmp_path / "held")
    before = set(entries(tmp_path / "held"))
    out = tmp_path / "out"
    shutil.copytree(checkpoint.parent / "out", out)
    run(gated(spark, joined(spark, checkpoint.parent / "in"), grants=0), out, tmp_path / "held")
    assert set(entries(tmp_path / "held")) == before


def test_planned_batch_is_kept_and_runs_again(spark: SparkSession, tmp_path: Path) -> None:
    inputs, out, plain, held = (tmp_path / name for name in ("in", "out", "plain", "held"))
    add_part(inputs, 0)
    run(passed_through(spark, inputs), out, plain)
    last = max(entries(plain))
    for log in (plain / "commits", out / "_spark_metadata"):  # as if it had died in the last batch
        (log / str(last)).unlink()
        (log / f".{last}.crc").unlink(missing_ok=True)

    report = adopt(plain, held)
    assert report.uncommitted_batch == last
    assert f"batch {last} will run again" in str(report)
    assert entries(held)[last].without_gate() == entries(plain)[last]

    add_part(inputs, 1)
    run(gated(spark, passed_through(spark, inputs)), out, held)
    assert rows(spark, out) == truth(spark, passed_through, tmp_path, parts=2)


class TestRefusals:
    def refused(self, convert: Callable, source: Path | str, target: Path | str) -> str:
        with pytest.raises(UsageError) as caught:
            convert(source, target)
        message = str(caught.value)
        assert "\n" not in message
        return message

    def test_no_checkpoint(self, tmp_path: Path) -> None:
        assert "is not a checkpoint" in self.refused(adopt, tmp_path, tmp_path / "to")
        assert "is not a checkpoint" in self.refused(adopt, tmp_path / "none", tmp_path / "to")

    def test_no_batch_yet(self, tmp_path: Path) -> None:
        (tmp_path / "new" / "offsets").mkdir(parents=True)
        (tmp_path / "new" / "metadata").write_text('{"id":"x"}')
        assert "holds no batch" in self.refused(adopt, tmp_path / "new", tmp_path / "to")

    def test_target_exists(self, checkpoint: Path, tmp_path: Path) -> None:
        assert "exists already" in self.refused(adopt, checkpoint, tmp_path)

    def test_target_inside_source(self, checkpoint: Path) -> None:
        assert "lies inside" in self.refused(adopt, checkpoint, checkpoint / "held")

    def test_wrong_form(self, checkpoint: Path, tmp_path: Path) -> None:
        adopt(checkpoint, tmp_path / "held")
        assert "gated already" in self.refused(adopt, tmp_path / "held", tmp_path / "to")
        assert "is not gated" in self.refused(release, checkpoint, tmp_path / "to")
        assert not (tmp_path / "to").exists()

    @pytest.mark.parametrize("place", ["s3a://bucket/ck", "hdfs://name/ck", Path("s3a://b/ck")])
    def test_remote(self, place: Path | str, checkpoint: Path, tmp_path: Path) -> None:
        assert "give a session" in self.refused(adopt, place, tmp_path / "to")
        assert "give a session" in self.refused(adopt, checkpoint, place)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("v3\n{}\n{}", "only v1 and v2 are known"),
            ("v1", "incomplete"),
            ("v2\n{}\norders:{}", "have names (orders)"),
            ('v2\n{"sourceMetadataInfo":{"orders":{}}}\n0:{}', "have names (orders)"),
        ],
    )
    def test_entry(self, text: str, reason: str, checkpoint: Path, tmp_path: Path) -> None:
        shutil.copytree(checkpoint, tmp_path / "odd")
        (tmp_path / "odd" / "offsets" / "0").write_text(text)
        assert reason in self.refused(adopt, tmp_path / "odd", tmp_path / "to")
        assert {path.name for path in tmp_path.iterdir()} == {"odd"}


def test_hadoop_converts_the_same(
    spark: SparkSession, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file system of this machine stands for all that it knows."""
    adopt(checkpoint, tmp_path / "held")
    monkeypatch.setattr(convert, "open_folder", hadoop_folder)
    report = adopt(checkpoint, tmp_path / "too", spark)
    assert report.target == f"file://{tmp_path}/too"
    assert content(tmp_path / "too") == content(tmp_path / "held")
    release(tmp_path / "too", tmp_path / "freed", spark)
    assert content(tmp_path / "freed") == content(checkpoint)
    with pytest.raises(UsageError, match="is not a checkpoint"):
        adopt(tmp_path / "none", tmp_path / "to", spark)
    with pytest.raises(UsageError, match="exists already"):
        adopt(checkpoint, tmp_path / "held", spark)


def test_file_uri_is_a_local_path(checkpoint: Path, tmp_path: Path) -> None:
    assert adopt(f"file://{checkpoint}", f"file:{tmp_path}/held").target == f"{tmp_path}/held"
