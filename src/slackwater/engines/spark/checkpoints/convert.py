"""Moves a Structured Streaming checkpoint between its plain and its source-gated form.

The source gate is one more source, the query's first. Spark numbers the offsets and the metadata
folders of sources by position, so a checkpoint written without the gate does not fit a query with
it, and the reverse. Both directions work on a copy: offsets gain or lose the gate's entry at
position 0, folders ``sources/N`` move by one. All else stays as it is: the gate's branch holds no
state, so operator ids and partitions are the same, and the query's id must stay, because sinks
recognise a repeated batch by it.

The copy has its name only once it is whole. Where a rename is not one step (S3) it may be seen
growing, its files in no order: start the query when the conversion has ended.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.files import (
    Folder,
    LocalFiles,
    hadoop_folder,
    numbers,
    open_folder,
)
from slackwater.engines.spark.checkpoints.offset_log import OffsetEntry, UnsupportedEntry

_OF_SOURCE = re.compile(r"sources/(\d+)(/.*)")
Place = Path | str


@dataclass(frozen=True, slots=True)
class Report:
    """What a conversion did."""

    source: str
    target: str
    batches: int  # offset log entries that were rewritten
    last_batch: int  # the newest of them
    uncommitted_batch: int | None  # planned but not committed: Spark will run it again as planned
    inputs: int  # sources of the user's query, the gate not counted

    def __str__(self) -> str:
        planned = self.uncommitted_batch
        rest = "" if planned is None else f"; batch {planned} will run again, as it was planned"
        return f"{self.target}: {self.batches} batches up to {self.last_batch} converted{rest}"


def adopt(source: Place, target: Place, spark: SparkSession | None = None) -> Report:
    """Copy the checkpoint of a stopped plain query into one that a source-gated query resumes.

    Parameters
    ----------
    spark
        Reaches file systems that are not this machine's; source and target may be on two. With it
        a path is where Spark takes it to be (``fs.defaultFS``), else on this machine.
    """
    return _convert(source, target, spark, _add_gate, +1)


def release(source: Place, target: Place, spark: SparkSession | None = None) -> Report:
    """Copy the checkpoint of a stopped source-gated query into one that plain Spark resumes.

    Parameters
    ----------
    spark
        Reaches file systems that are not this machine's; source and target may be on two. With it
        a path is where Spark takes it to be (``fs.defaultFS``), else on this machine.
    """
    return _convert(source, target, spark, _remove_gate, -1)


def _add_gate(folder: Folder, entry: OffsetEntry) -> OffsetEntry:
    if entry.gated:
        raise UsageError(f"{folder} is gated already: resume it with the source gate, as it is")
    return entry.with_gate()


def _remove_gate(folder: Folder, entry: OffsetEntry) -> OffsetEntry:
    if not entry.gated:
        raise UsageError(f"{folder} is not gated: resume it with plain Spark, as it is")
    return entry.without_gate()


def _convert(
    source: Place,
    target: Place,
    spark: SparkSession | None,
    rewrite: Callable[[Folder, OffsetEntry], OffsetEntry],
    shift: int,
) -> Report:
    origin, goal = _open(source, target, spark)
    made: list[Folder] = []
    try:
        _check_places(origin, goal)
        batches = numbers(origin.changed_s("offsets"))
        planned = {number: rewrite(origin, _parse(origin, number)) for number in batches}
        partial = goal.beside(".", f".partial-{os.getpid()}")
        made.append(partial)
        try:
            _copy_at_rest(origin, partial, planned, shift)
            report = _report(origin, goal, planned)
            made.append(goal)  # the rename may be a copy, and end in the middle
            partial.rename(goal)
        finally:
            with suppress(OSError):  # what is done is done
                partial.remove()
        return report
    except OSError as problem:
        left = " and ".join(str(folder) for folder in made if _may_exist(folder))
        kept = f"remove {left} before you try again" if left else "nothing was kept"
        raise UsageError(f"cannot copy {origin} to {goal}: {problem}; {kept}") from None


def _may_exist(folder: Folder) -> bool:
    try:
        return folder.exists()
    except OSError:
        return True


def _open(source: Place, target: Place, spark: SparkSession | None) -> tuple[Folder, Folder]:
    """Open both through Hadoop if one of them is: they may be on two file systems."""
    found = open_folder(source, spark), open_folder(target, spark)
    if all(isinstance(folder, LocalFiles) for folder in found):
        return found
    return hadoop_folder(source, spark), hadoop_folder(target, spark)


def _check_places(origin: Folder, goal: Folder) -> None:
    held = origin.changed_s("")
    if "metadata" not in held or "offsets" not in held:
        raise UsageError(
            f"{origin} is not a checkpoint (no metadata file or no offsets folder): "
            "give the folder that the query has as checkpointLocation"
        )
    if not numbers(origin.changed_s("offsets")):
        raise UsageError(f"{origin} holds no batch yet: start the query with a new checkpoint")
    if goal.exists():
        raise UsageError(f"{goal} exists already: name a folder that does not exist")
    if origin.contains(goal):
        raise UsageError(f"{goal} lies inside {origin}: name a folder outside of it")


def _parse(folder: Folder, number: int) -> OffsetEntry:
    name = f"offsets/{number}"
    try:
        text = folder.read(name)
        if text is None:
            raise UnsupportedEntry("it has gone: stop the query and try again")
        return OffsetEntry.parse(text)
    except (OSError, UnicodeDecodeError, UnsupportedEntry) as problem:
        raise UsageError(f"{folder}/{name} cannot be converted: {problem}") from None


def _copy_at_rest(
    origin: Folder, partial: Folder, planned: dict[int, OffsetEntry], shift: int
) -> None:
    """Copy a checkpoint that nobody writes to, with other offsets and other numbers of sources."""
    before = _batches(origin)
    try:
        for name in origin.files():
            copied = _renumbered(name, shift)
            if copied is not None and not _is_old_checksum(name, planned):
                origin.copy(name, partial, copied)
    except OSError:  # files that vanish mean that a query cleans up
        if _batches(origin) == before:
            raise
    if _batches(origin) != before:
        raise UsageError(f"{origin} changed while it was copied: stop its query and try again")
    for number, entry in planned.items():
        partial.write(f"offsets/{number}", entry.text())  # into the copy: it keeps its rights


def _batches(folder: Folder) -> tuple[list[str], ...]:
    return tuple(sorted(folder.changed_s(log)) for log in ("offsets", "commits"))


def _is_old_checksum(name: str, planned: dict[int, OffsetEntry]) -> bool:
    """Tell whether it is the checksum of an entry's old content: Spark does without those.

    Hadoop's local file system keeps ``.NAME.crc``, Spark's own checksums are in ``NAME.crc``.
    """
    log, _, entry = name.partition("/")
    number = entry.removesuffix(".crc").removeprefix(".")
    return (
        log == "offsets"
        and entry.endswith(".crc")
        and number.isdecimal()
        and int(number) in planned
    )


def _renumbered(name: str, shift: int) -> str | None:
    """Return the name of a file when the sources have moved; None: its source is no more.

    >>> _renumbered("sources/1/0", +1), _renumbered("sources/1/0", -1), _renumbered("state/1", 1)
    ('sources/2/0', 'sources/0/0', 'state/1')
    >>> _renumbered("sources/0/0", -1) is None
    True
    """
    found = _OF_SOURCE.fullmatch(name)
    if found is None:
        return name
    number = int(found[1]) + shift
    return None if number < 0 else f"sources/{number}{found[2]}"


def _report(origin: Folder, goal: Folder, entries: dict[int, OffsetEntry]) -> Report:
    last = max(entries)
    committed = numbers(origin.changed_s("commits"))
    newest = entries[last]
    return Report(
        source=str(origin),
        target=str(goal),
        batches=len(entries),
        last_batch=last,
        uncommitted_batch=None if last in committed else last,
        inputs=len(newest.offsets) - newest.gated,
    )
