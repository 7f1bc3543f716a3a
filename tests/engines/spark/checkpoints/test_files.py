"""Folders of checkpoints, while others write to them."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.files import open_folder


def test_one_file_that_has_gone_hides_no_other(tmp_path: Path) -> None:
    """Spark renames files while they are looked at: a link that leads nowhere is like one."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_text("v1")
    (tmp_path / "offsets" / ".8.tmp").symlink_to(tmp_path / "gone")
    assert list(open_folder(tmp_path).changed_s("offsets")) == ["7"]
    assert open_folder(tmp_path).changed_s("commits") == {}


@pytest.mark.spark
def test_a_file_system_that_nobody_knows_is_refused_in_one_line(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"^nowhere://x/y cannot be reached: .*No FileSystem"):
        open_folder("nowhere://x/y", spark)
