"""Conversions that fail in the middle, and copies that must leave nothing out; without Spark."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.convert import adopt
from slackwater.engines.spark.checkpoints.files import HadoopFiles, LocalFiles


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A plain checkpoint of one source and one batch, which holds state."""
    folder = tmp_path / "plain"
    for name, text in {
        "metadata": '{"id":"x"}',
        "offsets/0": 'v1\n{"batchWatermarkMs":0}\n{"n":3}',
        "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
        "sources/0/0": "v1\n{}",
        "state/0/0/1.delta": "rows",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_cannot_be_listed_is_not_left_out(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State that is another user's would be missing, and the query would begin it anew."""
    listed = os.scandir

    def refuse(path: Any) -> Iterator[os.DirEntry[str]]:
        if "state" in Path(path).parts:
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UsageError, match=r"Permission denied.*nothing was kept"):
        adopt(checkpoint, checkpoint.parent / "gated")
    assert not (checkpoint.parent / "gated").exists()


def test_a_copy_keeps_the_rights_of_files_and_folders(checkpoint: Path) -> None:
    rights = {"": 0o2770, "state": 0o2750, "state/0/0": 0o700, "sources/0": 0o755, "offsets": 0o775}
    for name, mode in rights.items():
        (checkpoint / name).chmod(mode)
    (checkpoint / "offsets" / "0").chmod(0o660)
    adopt(checkpoint, checkpoint.parent / "gated")
    gated = checkpoint.parent / "gated"
    assert {
        name: (gated / name.replace("sources/0", "sources/1")).stat().st_mode & 0o7777
        for name in rights
    } == rights
    assert (gated / "offsets" / "0").stat().st_mode & 0o777 == 0o660


def test_a_rename_that_ends_in_the_middle_says_what_is_left(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At an object store it is a copy of each file."""
    goal = checkpoint.parent / "gated"

    def rename(folder: LocalFiles, target: LocalFiles) -> None:
        shutil.copytree(folder.path / "offsets", target.path / "offsets")
        raise OSError("503 Slow Down")

    monkeypatch.setattr(LocalFiles, "rename", rename)
    with pytest.raises(UsageError, match=rf"503 Slow Down; remove {goal} before you try again$"):
        adopt(checkpoint, goal)
    shutil.rmtree(goal)

    def refuse(folder: LocalFiles, target: LocalFiles) -> None:
        raise OSError("no space")

    monkeypatch.setattr(LocalFiles, "rename", refuse)
    with pytest.raises(UsageError, match=r"no space; nothing was kept$"):
        adopt(checkpoint, goal)


def test_cleaning_up_makes_no_failure_of_a_conversion(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove(folder: LocalFiles) -> None:
        raise OSError("503 Slow Down")

    monkeypatch.setattr(LocalFiles, "remove", remove)
    goal = checkpoint.parent / "gated"
    assert adopt(checkpoint, goal).batches == 1
    assert names(goal) == {name.replace("sources/0", "sources/1") for name in names(checkpoint)}

    def rename(folder: LocalFiles, target: LocalFiles) -> None:
        raise OSError("no space")

    monkeypatch.setattr(LocalFiles, "rename", rename)
    with pytest.raises(UsageError, match=r"no space; remove \S*\.partial-\d+ before"):
        adopt(checkpoint, checkpoint.parent / "other")


class Stream:
    """What Hadoop gives to write to; it fails."""

    def __init__(self, abortable: bool, fails: str) -> None:
        self.done: list[str] = []
        self._abortable = abortable
        self._fails = fails

    def write(self, data: bytearray) -> None:
        self._do("write")

    def close(self) -> None:
        self._do("close")

    def abort(self) -> None:
        self._do("abort")

    def hasCapability(self, name: str) -> bool:
        return self._abortable and name == "fs.capability.outputstream.abortable"

    def _do(self, what: str) -> None:
        self.done.append(what)
        if what == self._fails:
            raise Py4JError("the connection is gone")


class System:
    """Hadoop's file system with one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def create(self, path: str, overwrite: bool) -> Stream:
        return self._stream

    def delete(self, path: str, recursive: bool) -> bool:
        self._stream.done.append(f"delete {path}")
        return True


@pytest.mark.parametrize(
    ("abortable", "fails", "done"),
    [
        (True, "write", ["write", "abort", "close"]),
        (True, "close", ["write", "close", "abort", "close"]),
        (False, "write", ["write", "close", "delete f"]),
        (False, "close", ["write", "close", "close", "delete f"]),
        (False, "", ["write", "close"]),
    ],
)
def test_a_file_that_cannot_be_written_is_given_up(
    monkeypatch: pytest.MonkeyPatch, abortable: bool, fails: str, done: list[str]
) -> None:
    """A stream that is left open keeps its buffers, and what is closed half-way is a file."""
    stream = Stream(abortable, fails)
    folder = object.__new__(HadoopFiles)
    folder._system = System(stream)
    monkeypatch.setattr(folder, "_path", lambda name: name, raising=False)
    if fails:
        with pytest.raises(OSError, match=r"^the connection is gone$"):
            folder.write("f", "text")
    else:
        folder.write("f", "text")
    assert stream.done == done
