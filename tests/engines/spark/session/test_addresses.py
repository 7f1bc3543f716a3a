"""Paths without an address, where Hadoop's default file system is not this machine's."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.convert import adopt
from slackwater.engines.spark.checkpoints.files import hadoop_folder, open_folder
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.session.addresses import address_of
from slackwater.engines.spark.session.checkpoint_files import MANAGER, suit_checkpoints

pytestmark = pytest.mark.spark


@pytest.fixture
def far(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """What the default file system has as /slackwater-far, which this machine does not have."""
    (tmp_path / "far").mkdir()
    name = tmp_path.name.lower()
    keys = {
        "fs.defaultFS": f"viewfs://{name}/",
        f"fs.viewfs.mounttable.{name}.link./slackwater-far": f"file://{tmp_path}/far",
    }
    before = spark.conf.get(MANAGER)
    for key, value in keys.items():
        spark.conf.set(key, value)
    yield tmp_path / "far"
    for key in keys:
        spark.conf.unset(key)
    spark.conf.set(MANAGER, before)


def test_a_path_is_where_spark_takes_it_to_be(spark: SparkSession, far: Path) -> None:
    """Else a checkpoint on HDFS gets its mark and its lock on this machine."""
    path = "/slackwater-far/checkpoint"
    address = address_of(path, spark)
    assert address.startswith("viewfs://")
    assert address.endswith(path)
    query = spark.readStream.format("rate").load().writeStream.format("noop")
    query.option("checkpointLocation", path).start().stop()
    assert (far / "checkpoint" / "metadata").exists()
    assert "metadata" in open_folder(path, spark).changed_s("")
    hadoop_folder(path, spark).write("mark", "ours")
    assert (far / "checkpoint" / "mark").read_text() == "ours"
    with pytest.raises(UsageError, match=r"viewfs:\S+ holds no batch yet"):
        adopt(path, f"{path}-gated", spark)
    suit_checkpoints(spark, [f"file://{far}"])
    assert spark.conf.get(MANAGER, None) is not None
    suit_checkpoints(spark, [path])
    assert spark.conf.get(MANAGER, None) is None


def test_an_address_is_what_it_says(spark: SparkSession, far: Path) -> None:
    for address in (f"file://{far}", f"file:{far}", "s3a://bucket/q"):
        assert address_of(address, spark) == address
    open_folder(f"file://{far}/q", spark).write("mark", "ours")
    assert (far / "q" / "mark").exists()


def test_without_a_cluster_a_path_stays_as_it_is(spark: SparkSession) -> None:
    assert address_of("data/q", spark) == address_of("data/q", None) == "data/q"


def test_a_fleet_leaves_the_choice_to_spark_for_a_checkpoint_elsewhere(
    spark: SparkSession, far: Path
) -> None:
    writer = spark.readStream.format("rate").load().writeStream.format("noop")
    with Fleet(spark, "fcfs", name="far") as fleet:
        fleet.start(writer.option("checkpointLocation", f"file://{far}/here"), name="here")
        assert spark.conf.get(MANAGER, None) is not None
        fleet.start(writer.option("checkpointLocation", "/slackwater-far/q"), name="there")
        assert spark.conf.get(MANAGER, None) is None
        assert not fleet.failures
