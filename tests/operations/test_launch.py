"""What is checked before a query of a fleet file starts."""

from pathlib import Path

import pytest

from slackwater.core.errors import UsageError
from slackwater.operations.launch import check_results


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
