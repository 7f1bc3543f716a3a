"""What was there before anything was changed, kept in a file that outlives the process.

Every line is written before the change that it undoes. The file is locked while its owner lives;
one that nobody holds but that has lines was left by a process that was killed.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from slackwater.common.procfs import find_thread
from slackwater.core.entities import Thread
from slackwater.core.errors import SlackwaterError, UsageError

ROOM = 1000  # lines of what was forgotten, until the file is written anew


class _OfThread(Struct, frozen=True, tag_field="kind"):
    """Something that a thread (of a process: its main one) had."""

    pid: int
    tid: int
    started: int

    @property
    def thread(self) -> Thread:
        return Thread(self.pid, self.tid, self.started)

    @property
    def key(self) -> str:
        return _key(type(self), self.thread)


class NiceValue(_OfThread, frozen=True, tag="nice"):
    """The nice value of a thread."""

    value: int


class Scheduler(_OfThread, frozen=True, tag="scheduling"):
    """The scheduling policy of a thread, as the kernel numbers it, and its priority."""

    policy: int
    priority: int


class ProcessNice(_OfThread, frozen=True, tag="process"):
    """The nice value of a process, which threads that were born later have inherited from us."""

    nice: int
    since: int  # ticks since boot: threads that were born then or later


class Place(_OfThread, frozen=True, tag="place"):
    """The group of a thread."""

    path: str


class Home(_OfThread, frozen=True, tag="home"):
    """The group that a process belongs to as a whole."""

    path: str


class MadeGroup(Struct, frozen=True, tag_field="kind", tag="group"):
    """A group that we made."""

    path: str

    @property
    def key(self) -> str:
        return f"group {self.path}"


class _Forget(Struct, frozen=True):
    """The key of an entry that counts no more."""

    forget: str


OfThread = NiceValue | Scheduler | ProcessNice | Place | Home
Entry = OfThread | MadeGroup
KnownOfThread = TypeVar("KnownOfThread", NiceValue, Scheduler, ProcessNice, Place, Home)


class Journal:
    """Originals of threads and processes, and the groups that were made.

    Parameters
    ----------
    path
        Its folder must exist and be private: what the file says is done by the next start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise SlackwaterError(f"cannot write the journal {path}: {error.strerror}") from error
        if os.fstat(self._file).st_uid != os.getuid():
            os.close(self._file)
            raise UsageError(f"{path} belongs to another user; remove it")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise UsageError(f"a middleware runs already and holds {path}; stop it first") from None
        self.entries: dict[str, Entry] = {}
        self._lines = 0  # of the file
        for entry in self._read():
            self._lines += 1
            if isinstance(entry, _Forget):
                self.entries.pop(entry.forget, None)
            else:
                self.entries.setdefault(entry.key, entry)

    def record(self, entry: Entry) -> None:
        """Remember what was there; the first word on a thing counts."""
        if entry.key not in self.entries:
            self._write(entry)
            self.entries[entry.key] = entry

    def entry_of(self, kind: type[KnownOfThread], thread: Thread) -> KnownOfThread | None:
        """Return what it remembers of a thread."""
        found = self.entries.get(_key(kind, thread))
        return found if isinstance(found, kind) else None

    def forget(self, entry: Entry) -> None:
        """Forget what has been put back, or has gone."""
        if self.entries.pop(entry.key, None) is not None:
            self._write(_Forget(entry.key))
            if self._lines > 2 * len(self.entries) + ROOM:
                self.trim()

    def trim(self) -> None:
        """Write the file anew with what still counts."""
        os.ftruncate(self._file, 0)
        self._lines = 0
        for entry in self.entries.values():
            self._write(entry)

    def _write(self, entry: Entry | _Forget) -> None:
        os.write(self._file, msgspec.json.encode(entry) + b"\n")
        self._lines += 1

    def close(self) -> None:
        """Let go; a journal without entries leaves no file."""
        if not self.entries:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _read(self) -> Iterator[Entry | _Forget]:
        for line in self.path.read_bytes().splitlines():
            kind = _Forget if line.startswith(b'{"forget"') else Entry
            try:
                yield msgspec.json.decode(line, type=kind)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                # Cut off in the middle: its change did not happen yet. Or of another version.
                continue


def still_there(entry: OfThread) -> bool:
    """Tell whether the thread of an entry lives, and is the same one."""
    return find_thread(entry.pid, entry.tid) == entry.thread


def _key(kind: type[Struct], thread: Thread) -> str:
    return f"{kind.__struct_config__.tag} {thread.pid} {thread.tid} {thread.started}"
