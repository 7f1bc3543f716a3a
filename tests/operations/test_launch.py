"""What is checked before a query of a fleet file starts."""

from pathlib import Path

import pytest

from slackwater.core.errors import UsageError
from slackwater.operations.fleet_file import FleetFile, QuerySection
from slackwater.operations.launch import Launch, check_results


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.touch()


def test_results_without_their_checkpoint_are_refused(tmp_path: Path) -> None:
    """Spark would take the first batches for those that are there and leave them out."""
    results, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    check_results("q", results, checkpoint)
    touch(results / "_spark_metadata" / "0")
    with pytest.raises(UsageError, match=r"q: .* whose checkpoint is gone"):
        check_results("q", results, checkpoint)
    touch(checkpoint / "offsets" / "0")
    check_results("q", results, checkpoint)


@pytest.mark.parametrize(
    ("stated", "written"),
    [("out", "{folder}/out"), ("/data/out", "/data/out"), ("s3a://events/out", "s3a://events/out")],
)
def test_results_go_to_the_file_system_that_they_name(
    tmp_path: Path, stated: str, written: str
) -> None:
    launch = Launch(FleetFile(), tmp_path)
    assert launch.results(stated) == written.format(folder=tmp_path.resolve())


def test_a_checkpoint_elsewhere_is_refused(tmp_path: Path) -> None:
    """It would become a folder named hdfs: of this machine."""
    file = FleetFile(queries={"q": QuerySection(query="json:loads", checkpoint="hdfs://name/c")})
    with pytest.raises(UsageError, match="q: checkpoints are folders of this machine"):
        Launch(file, tmp_path)
