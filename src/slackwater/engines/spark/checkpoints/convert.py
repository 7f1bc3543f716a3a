"""Moves a Structured Streaming checkpoint between its plain and its source-gated form.

The source gate is one more source, the query's first. Spark numbers the offsets and the metadata
folders of sources by position, so a checkpoint written without the gate does not fit a query with
it, and the reverse. Both directions work on a copy: offsets gain or lose the gate's entry at
position 0, folders ``sources/N`` move by one. All else stays as it is: the gate's branch holds no
state, so operator ids and partitions are the same, and the query's id must stay, because sinks
recognise a repeated batch by it.
"""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.offset_log import OffsetEntry, UnsupportedEntry

_REMOTE = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/")
_FILE_URI = re.compile(r"^file:/+")


@dataclass(frozen=True, slots=True)
class Report:
    """What a conversion did."""

    source: Path
    target: Path
    batches: int  # offset log entries that were rewritten
    last_batch: int  # the newest of them
    uncommitted_batch: int | None  # planned but not committed: Spark will run it again as planned
    inputs: int  # sources of the user's query, the gate not counted

    def __str__(self) -> str:
        planned = self.uncommitted_batch
        rest = "" if planned is None else f"; batch {planned} will run again, as it was planned"
        return f"{self.target}: {self.batches} batches up to {self.last_batch} converted{rest}"


def adopt(source: Path | str, target: Path | str) -> Report:
    """Copy the checkpoint of a stopped plain query into one that a source-gated query resumes."""
    return _convert(source, target, _add_gate, _shift_up)


def release(source: Path | str, target: Path | str) -> Report:
    """Copy the checkpoint of a stopped source-gated query into one that plain Spark resumes."""
    return _convert(source, target, _remove_gate, _shift_down)


def _add_gate(folder: Path, entry: OffsetEntry) -> OffsetEntry:
    if entry.gated:
        raise UsageError(f"{folder} is gated already: resume it with the source gate, as it is")
    return entry.with_gate()


def _remove_gate(folder: Path, entry: OffsetEntry) -> OffsetEntry:
    if not entry.gated:
        raise UsageError(f"{folder} is not gated: resume it with plain Spark, as it is")
    return entry.without_gate()


def _convert(
    source: Path | str,
    target: Path | str,
    rewrite: Callable[[Path, OffsetEntry], OffsetEntry],
    renumber: Callable[[Path], None],
) -> Report:
    origin, goal = _local(source), _local(target)
    _check_places(origin, goal)
    planned = {number: rewrite(origin, _parse(path)) for number, path in _log(origin / "offsets")}
    partial = goal.with_name(f".{goal.name}.partial-{os.getpid()}")
    try:
        _copy_at_rest(origin, partial)
        for number, entry in planned.items():
            _replace_text(partial / "offsets" / str(number), entry.text())
        renumber(partial / "sources")
        partial.rename(goal)
    except OSError as problem:
        raise UsageError(f"cannot copy {origin} to {goal}: {problem}; nothing was kept") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return _report(origin, goal, planned)


def _local(place: Path | str) -> Path:
    text = _FILE_URI.sub("/", str(place))
    remote = _REMOTE.match(text)
    if remote:
        raise UsageError(
            f"{place} is on {remote[1]}, and only checkpoints on a local path can be converted: "
            "copy the folder here, convert it, and copy the result back"
        )
    return Path(text)


def _check_places(origin: Path, goal: Path) -> None:
    if not (origin / "metadata").is_file() or not (origin / "offsets").is_dir():
        raise UsageError(
            f"{origin} is not a checkpoint (no metadata file or no offsets folder): "
            "give the folder that the query has as checkpointLocation"
        )
    if not _log(origin / "offsets"):
        raise UsageError(f"{origin} holds no batch yet: start the query with a new checkpoint")
    if goal.exists() or goal.is_symlink():
        raise UsageError(f"{goal} exists already: name a folder that does not exist")
    if goal.resolve().is_relative_to(origin.resolve()):
        raise UsageError(f"{goal} lies inside {origin}: name a folder outside of it")


def _log(folder: Path) -> list[tuple[int, Path]]:
    """Return the entries of a metadata log by batch; temporary and checksum files are none."""
    if not folder.is_dir():
        return []
    return sorted((int(path.name), path) for path in folder.iterdir() if path.name.isdecimal())


def _parse(path: Path) -> OffsetEntry:
    try:
        return OffsetEntry.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, UnsupportedEntry) as problem:
        raise UsageError(f"{path} cannot be converted: {problem}") from None


def _copy_at_rest(origin: Path, partial: Path) -> None:
    """Copy a checkpoint that nobody writes to."""
    partial.parent.mkdir(parents=True, exist_ok=True)
    before = _batches(origin)
    try:
        shutil.copytree(origin, partial)
    except shutil.Error as problem:  # files that vanish mean that a query cleans up
        if _batches(origin) == before:
            raise OSError(str(problem)) from None
    if _batches(origin) != before:
        raise UsageError(f"{origin} changed while it was copied: stop its query and try again")


def _batches(folder: Path) -> tuple[list[str], ...]:
    return tuple(
        sorted(os.listdir(folder / log))
        for log in ("offsets", "commits")
        if (folder / log).is_dir()
    )


def _replace_text(path: Path, text: str) -> None:
    """Replace a file, and drop the checksums of its old content: Spark does without them.

    Hadoop's local file system keeps ``.NAME.crc``, Spark's own checksums are in ``NAME.crc``.
    """
    path.write_text(text, encoding="utf-8")
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    path.with_name(f"{path.name}.crc").unlink(missing_ok=True)


def _shift_up(sources: Path) -> None:
    for number, path in reversed(_log(sources)):
        path.rename(sources / str(number + 1))


def _shift_down(sources: Path) -> None:
    for number, path in _log(sources):
        if number == 0:
            shutil.rmtree(path)
        else:
            path.rename(sources / str(number - 1))


def _report(origin: Path, goal: Path, entries: dict[int, OffsetEntry]) -> Report:
    last = max(entries)
    committed = {number for number, _ in _log(goal / "commits")}
    newest = entries[last]
    return Report(
        source=origin,
        target=goal,
        batches=len(entries),
        last_batch=last,
        uncommitted_batch=None if last in committed else last,
        inputs=len(newest.offsets) - newest.gated,
    )
