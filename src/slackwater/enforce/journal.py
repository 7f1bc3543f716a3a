"""What was there before anything was changed, kept in a file that outlives the process.

Every line is written before the change that it undoes. The file is locked while its owner lives;
one that nobody holds but that has lines was left by a process that was killed.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slackwater.common.procfs import find_thread
from slackwater.core.entities import Thread
from slackwater.core.errors import SlackwaterError, UsageError

ROOM = 1000  # lines of what was forgotten, until the file is written anew

Entry = dict[str, Any]


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
            if "forget" in entry:
                self.entries.pop(entry["forget"], None)
            else:
                self.entries.setdefault(key_of(entry), entry)

    def record(self, entry: Entry) -> None:
        """Remember what was there; the first word on a thing counts."""
        key = key_of(entry)
        if key not in self.entries:
            self._write(entry)
            self.entries[key] = entry

    def entry_of(self, kind: str, thread: Thread) -> Entry | None:
        """Return what it remembers of a thread."""
        return self.entries.get(key_of(thread_entry(kind, thread)))

    def forget(self, entry: Entry) -> None:
        """Forget what has been put back, or has gone."""
        if self.entries.pop(key_of(entry), None) is not None:
            self._write({"forget": key_of(entry)})
            if self._lines > 2 * len(self.entries) + ROOM:
                self.trim()

    def trim(self) -> None:
        """Write the file anew with what still counts."""
        os.ftruncate(self._file, 0)
        self._lines = 0
        for entry in self.entries.values():
            self._write(entry)

    def _write(self, entry: Entry) -> None:
        os.write(self._file, json.dumps(entry, separators=(",", ":")).encode() + b"\n")
        self._lines += 1

    def close(self) -> None:
        """Let go; a journal without entries leaves no file."""
        if not self.entries:
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _read(self) -> Iterator[Entry]:
        for line in self.path.read_text(errors="replace").splitlines():
            try:
                entry = json.loads(line)
                if "forget" not in entry:
                    key_of(entry)
            except (ValueError, KeyError, TypeError):
                continue  # cut off in the middle: its change did not happen yet
            yield entry


def key_of(entry: Entry) -> str:
    """Return what an entry speaks of."""
    if entry["kind"] == "group":
        return f"group {entry['path']}"
    return f"{entry['kind']} {entry['pid']} {entry['tid']} {entry['started']}"


def thread_entry(kind: str, thread: Thread, **values: Any) -> Entry:
    """Make an entry about a thread (of a process: its main one)."""
    return {"kind": kind, **thread._asdict(), **values}


def thread_of(entry: Entry) -> Thread | None:
    """Return the thread of an entry, if it still is the same one."""
    thread = Thread(entry["pid"], entry["tid"], entry["started"])
    return thread if find_thread(thread.pid, thread.tid) == thread else None
