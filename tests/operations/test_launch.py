"""What is checked before a query of a fleet file starts."""

from pathlib import Path

import pytest

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.files import LocalFiles
from slackwater.engines.spark.checkpoints.ownership import refuse_lost_checkpoint
from slackwater.operations.fleet_file import FleetFile, QuerySection
from slackwater.operations.launch import Launch


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.touch()


def test_results_without_their_checkpoint_are_refused(tmp_path: Path) -> None:
    """Spark would take the first batches for those that are there and leave them out."""
    results, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    folders = LocalFiles(results), LocalFiles(checkpoint)
    refuse_lost_checkpoint("q", *folders)
    touch(results / "_spark_metadata" / "0")
    with pytest.raises(UsageError, match=r"q: .* whose checkpoint is gone"):
        refuse_lost_checkpoint("q", *folders)
    touch(checkpoint / "offsets" / "0")
    refuse_lost_checkpoint("q", *folders)


@pytest.mark.parametrize(
    ("stated", "written"),
    [("out", "{folder}/out"), ("/data/out", "/data/out"), ("s3a://events/out", "s3a://events/out")],
)
def test_results_go_to_the_file_system_that_they_name(
    tmp_path: Path, stated: str, written: str
) -> None:
    launch = Launch(FleetFile(), tmp_path)
    assert launch.results(stated) == written.format(folder=tmp_path.resolve())


@pytest.mark.parametrize(
    ("stated", "of_all", "expected"),
    [
        (None, "checkpoints", "{folder}/checkpoints/q"),
        (None, "s3a://bucket/checkpoints/", "s3a://bucket/checkpoints/q"),
        ("hdfs://name/c", "checkpoints", "hdfs://name/c"),
        ("mine", "s3a://bucket/checkpoints", "{folder}/mine"),
    ],
)
def test_checkpoints_are_where_their_address_says(
    tmp_path: Path, stated: str | None, of_all: str, expected: str
) -> None:
    """Joined to a folder, an address would become one named s3a: of this machine."""
    query = QuerySection(query="json:loads", checkpoint=stated)
    launch = Launch(FleetFile(checkpoints=of_all, queries={"q": query}), tmp_path)
    assert launch.checkpoint("q") == expected.format(folder=tmp_path.resolve())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"table": "lake.db.t", "path": "out"}, "table and path are two places"),
        ({"format": "delta"}, 'format = "delta" needs path'),
    ],
)
def test_a_query_has_one_place_for_its_results(keys: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        QuerySection(query="json:loads", **keys)
