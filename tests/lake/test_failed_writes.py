"""An S3 that does not take a checkpoint's file: what Spark's classes make of it."""

from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from slackwater.engines.spark.checkpoints.files import hadoop_folder, numbers
from slackwater.engines.spark.session.checkpoint_files import MANAGER, suit_checkpoints
from tests.lake.failing_server import FailingServer
from tests.lake.s3_server import S3Server
from tests.versions.files import EACH, write_files

pytestmark = pytest.mark.lake

ABORTABLE = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
BUCKET = "refusing"
ROOT = f"s3a://{BUCKET}"


@pytest.fixture
def refusing(spark: SparkSession, s3: S3Server) -> Iterator[FailingServer]:
    """For a while the plan of the second batch cannot be written, nor that it is done."""
    server = FailingServer(s3.address, r"/(offsets|commits)/1$|/refused/file$")
    with urlopen(Request(f"{s3.address}/{BUCKET}", method="PUT"), timeout=5):
        pass
    key, before = f"fs.s3a.bucket.{BUCKET}.endpoint", spark.conf.get(MANAGER)
    spark.conf.set(key, server.address)
    yield server
    spark.conf.unset(key)
    spark.conf.set(MANAGER, before)
    server.stop()


def run(spark: SparkSession, inputs: Path, checkpoint: str, out: str) -> None:
    """Read what is there into a Delta table, a file a batch."""
    reader = spark.readStream.schema("ms long, key long").option("maxFilesPerTrigger", 1)
    writer = reader.json(str(inputs)).writeStream.format("delta")
    writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query = writer.start(out)
    try:
        query.awaitTermination()
    finally:
        query.stop()


def test_a_plan_that_is_not_written_fails_the_query(
    spark: SparkSession, refusing: FailingServer, tmp_path: Path
) -> None:
    checkpoint = f"{ROOT}/default"
    suit_checkpoints(spark, [checkpoint])
    assert spark.conf.get(MANAGER, None) is None
    with pytest.raises(StreamingQueryException, match=r"offsets/1|AccessDenied"):
        run(spark, write_files(tmp_path / "in", 3), checkpoint, str(tmp_path / "out"))
    assert refusing.refusals
    folder = hadoop_folder(checkpoint, spark)
    assert numbers(folder.changed_s("offsets")) == numbers(folder.changed_s("commits")) == [0]


def test_sparks_class_for_clouds_goes_on_without_it_and_loses_rows(
    spark: SparkSession, refusing: FailingServer, tmp_path: Path
) -> None:
    """The reason why nobody gets it unasked; should Spark mend it, docs/lake.md can say so."""
    spark.conf.set(MANAGER, ABORTABLE)
    whole, inputs = write_files(tmp_path / "whole", 3), tmp_path / "in"
    inputs.mkdir()
    checkpoint, out = f"{ROOT}/abortable", str(tmp_path / "out")

    def run_with(*files: int) -> None:
        for number in files:
            (whole / f"{number:04}.json").rename(inputs / f"{number:04}.json")
        run(spark, inputs, checkpoint, out)

    run_with(0, 1)
    folder = hadoop_folder(checkpoint, spark)
    assert refusing.refusals
    assert numbers(folder.changed_s("offsets")) == numbers(folder.changed_s("commits")) == [0]

    refusing.refuses_nothing()
    run_with(2)  # into the second batch too: its number is known to the table
    assert numbers(folder.changed_s("offsets")) == numbers(folder.changed_s("commits")) == [0, 1]
    assert spark.read.format("delta").load(out).count() == 2 * EACH  # of 3


def test_a_file_of_ours_that_is_not_written_fails_in_one_line(
    spark: SparkSession, refusing: FailingServer
) -> None:
    folder = hadoop_folder(f"{ROOT}/refused", spark)
    with pytest.raises(OSError, match=r"^[^\n]+AccessDenied[^\n]*$"):
        folder.write("file", "text")
    assert folder.read("file") is None
    folder.write("other", "text")
    assert folder.read("other") == "text"
