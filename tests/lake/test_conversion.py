"""Checkpoints at S3 change form: plain, gated, plain again; nothing is lost or doubled."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.convert import adopt, release
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.session.checkpoint_files import MANAGER, suit_checkpoints
from tests.lake import jars, tables
from tests.lake.s3_server import S3Server
from tests.versions.files import counts, truth, write_files
from tests.waiting import eventually

pytestmark = pytest.mark.lake

ROOT = f"s3a://{jars.BUCKET}/conversion"
OUT = f"{ROOT}/out"


def writer(frame: DataFrame, checkpoint: str):  # type: ignore[no-untyped-def]
    return frame.writeStream.format("delta").option("checkpointLocation", checkpoint)


def run(frame: DataFrame, checkpoint: str) -> None:
    query = writer(frame, checkpoint).start(OUT)
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def test_resumes_exactly(
    spark: SparkSession, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(tmp_path))
    before = spark.conf.get(MANAGER)
    suit_checkpoints(spark, [ROOT])
    assert spark.conf.get(MANAGER, None) is None
    whole, inputs = write_files(tmp_path / "whole", 9), tmp_path / "in"
    inputs.mkdir()
    parts = [sorted(whole.iterdir())[first : first + 3] for first in (0, 3, 6)]

    def add() -> None:
        for path in parts.pop(0):
            path.rename(inputs / path.name)

    add()
    run(counts(spark, inputs), f"{ROOT}/plain")
    report = adopt(f"{ROOT}/plain", f"{ROOT}/gated", spark)
    assert (report.inputs, report.uncommitted_batch) == (1, None)

    add()
    with Fleet(spark, "fcfs", name="c", gate="source") as fleet:
        frame = fleet.gate(counts(spark, inputs), "gated")
        started = writer(frame, f"{ROOT}/gated").option("path", OUT)
        fleet.start(started, name="gated")
        eventually(lambda: tables.rows(spark, "delta", OUT) == truth(6), limit_s=90, pause_s=0.2)

    conf = jars.settings(s3.address, "unused")
    query = "[queries.q]\nquery = 'tests.lake.pipeline:counted_files'"
    cli = tables.Fleet(tmp_path, "", conf, query)
    said = cli.command("release", f"{ROOT}/gated", f"{ROOT}/freed")
    assert f"{ROOT}/freed: " in said

    add()
    run(counts(spark, inputs), f"{ROOT}/freed")
    assert tables.rows(spark, "delta", OUT) == truth(9)

    with pytest.raises(UsageError, match="exists already"):
        adopt(f"{ROOT}/plain", f"{ROOT}/gated", spark)
    with pytest.raises(UsageError, match="is not gated"):
        release(f"{ROOT}/freed", f"{ROOT}/no", spark)
    with pytest.raises(UsageError, match="is not a checkpoint"):
        adopt(f"{ROOT}/none", f"{ROOT}/no", spark)
    with pytest.raises(UsageError, match=r"elsewhere.*does not exist"):
        adopt("s3a://elsewhere/none", f"{ROOT}/no", spark)
    spark.conf.set(MANAGER, before)
