"""What tells whether something has come to a source, without Spark."""

import os
from pathlib import Path

import pytest

from slackwater.engines.spark.sources.arrivals import LocalFolder


def test_a_folder_shows_what_was_added_wherever(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    folder = LocalFolder(str(tmp_path))
    added = tmp_path / "one", below / "two", below / "c" / "three"
    for path in added:
        path.parent.mkdir(exist_ok=True)
        for each in (tmp_path, *tmp_path.glob("**/")):
            os.utime(each, (1, 1))  # what changes twice within a few milliseconds has one time
        before = folder.mark()
        assert folder.mark() == before
        path.write_text("row")
        assert folder.mark() != before


def test_a_folder_that_is_made_while_others_are_listed_is_looked_at_too(tmp_path: Path) -> None:
    """The time of the folder above it is that of the list, on a clock of milliseconds."""
    folder = LocalFolder(str(tmp_path))
    folder.mark()
    listed_ns = tmp_path.stat().st_mtime_ns
    below = tmp_path / "below"
    below.mkdir()
    os.utime(below, (1, 1))
    os.utime(tmp_path, ns=(listed_ns, listed_ns))
    before = folder.mark()
    (below / "one").write_text("row")
    assert folder.mark() != before


def test_a_folder_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LocalFolder(str(tmp_path / "none")).mark()
