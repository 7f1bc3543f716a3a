"""Checkpoints in the forms that Spark has written since 2.1 change theirs, and change it back.

The forms are those of the samples that Spark keeps for its own tests; the files are made here.
"""

import json
from pathlib import Path

import pytest

from slackwater.engines.spark.checkpoints.convert import adopt, release

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PARTITIONS = {"spark.sql.shuffle.partitions": "5"}
OFFSETS = ('{"topic-0":{"0":1}}', "7")  # of a Kafka topic, and of a source that counts
SINCE_2_3 = PARTITIONS | {PROVIDER: HDFS}
SINCE_2_4 = SINCE_2_3 | {"spark.sql.streaming.multipleWatermarkPolicy": "min"}


def write(folder: Path, conf: dict[str, str] | None, commit: str | None, *offsets: str) -> Path:
    """Write two batches; the first is committed, if there is a log of commits."""
    metadata = {"batchWatermarkMs": 5000, "batchTimestampMs": 1_531_991_878_604}
    entry = "\n".join(("v1", json.dumps(metadata | ({} if conf is None else {"conf": conf}))))
    files = {"metadata": '{"id":"d366a8bf-db79-42ca-b5a4-d9ca0a11d63e"}', "state/0/1/1.delta": ""}
    files |= {f"offsets/{number}": "\n".join((entry, *offsets)) for number in (0, 1)}
    files |= {} if commit is None else {"commits/0": f"v1\n{commit}"}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def content(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


@pytest.mark.parametrize(
    ("conf", "commit"),
    [
        pytest.param(None, None, id="2.1: no settings, no log of commits"),
        pytest.param(SINCE_2_3, "{}", id="2.3: commits without a watermark"),
        pytest.param(SINCE_2_4, '{"nextBatchWatermarkMs":5000}', id="2.4 to 4.0"),
    ],
)
@pytest.mark.parametrize("offsets", [OFFSETS, OFFSETS[:1], ("-", "0")], ids=" ".join)
def test_there_and_back(
    conf: dict[str, str] | None, commit: str | None, offsets: tuple[str, ...], tmp_path: Path
) -> None:
    old = write(tmp_path / "old", conf, commit, *offsets)
    report = adopt(old, tmp_path / "held")
    assert (report.batches, report.uncommitted_batch, report.inputs) == (2, 1, len(offsets))
    held = (tmp_path / "held" / "offsets" / "1").read_text()
    assert held.split("\n")[2:] == ['{"g": 0}', *offsets]
    release(tmp_path / "held", tmp_path / "freed")
    assert content(tmp_path / "freed") == content(old)
