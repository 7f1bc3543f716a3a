"""One entry of a streaming query's offset log: what Spark planned to read in one batch.

Version 1 holds a line for the version, a line of metadata and one line a source, in the order of
the sources in the plan. Version 2 starts each source's line with its key: its number, or the name
that the user gave it. ``-`` stands for a source that had no offset yet.
"""

import json
import re
from dataclasses import dataclass, replace

from slackwater.engines.spark.checkpoints.files import Folder

# Where the gate starts. Spark compares offsets as text, so this is how Python writes them: in any
# other spelling a resumed query would see a change in the gate and run a batch without data.
_FIRST_GATE_OFFSET = json.dumps({"g": 0})
_ANY_GATE_OFFSET = re.compile(r'\{\s*"g"\s*:\s*\d+\s*\}')


class UnsupportedEntry(ValueError):
    """An entry that cannot be understood, or not be converted."""


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    """A parsed entry, complete enough to write the same text again.

    >>> plain = OffsetEntry.parse('v1\\n{}\\n{"logOffset":7}')
    >>> print(plain.with_gate().text())
    v1
    {}
    {"g": 0}
    {"logOffset":7}
    >>> plain.with_gate().without_gate() == plain
    True
    """

    version: str
    metadata: str
    offsets: tuple[tuple[int, str], ...]  # number of the source and its offset, in the file's order

    @classmethod
    def parse(cls, text: str) -> "OffsetEntry":
        """Read an entry; raises `UnsupportedEntry` with the reason in one line."""
        version, *rest = text.split("\n")
        if len(rest) < 2:
            raise UnsupportedEntry("it is incomplete; restore it, or delete it if it is the last")
        metadata, *lines = rest
        if version == "v1":
            return cls(version, metadata, tuple(enumerate(lines)))
        if version == "v2":
            _refuse_named_sources(metadata)
            return cls(version, metadata, tuple(_keyed(line) for line in lines))
        raise UnsupportedEntry(f"its version is {version!r}, and only v1 and v2 are known")

    def text(self) -> str:
        """Return the entry as Spark writes it."""
        keyed = self.version == "v2"
        lines = (f"{number}:{offset}" if keyed else offset for number, offset in self.offsets)
        return "\n".join((self.version, self.metadata, *lines))

    @property
    def gated(self) -> bool:
        """Whether the first source is the source gate, told by the form of its offset."""
        return any(n == 0 and _ANY_GATE_OFFSET.fullmatch(offset) for n, offset in self.offsets)

    def with_gate(self) -> "OffsetEntry":
        """Return the same entry with the gate, at its start, as the first source."""
        gate = (0, _FIRST_GATE_OFFSET)
        return replace(self, offsets=(gate, *((n + 1, offset) for n, offset in self.offsets)))

    def without_gate(self) -> "OffsetEntry":
        """Return the same entry without its first source."""
        return replace(self, offsets=tuple((n - 1, offset) for n, offset in self.offsets if n))


def _refuse_named_sources(metadata: str) -> None:
    try:
        named = json.loads(metadata).get("sourceMetadataInfo")
    except (ValueError, AttributeError):
        raise UnsupportedEntry("its metadata is not a JSON object; restore it") from None
    if named:
        raise UnsupportedEntry(f"its sources have names ({', '.join(named)}): use the clock gate")


def _keyed(line: str) -> tuple[int, str]:
    key, colon, offset = line.partition(":")
    if not colon or not key.isdecimal():
        raise UnsupportedEntry(f"its sources have names ({key}): use the clock gate")
    return int(key), offset


def last_commit_s(checkpoint: Folder) -> float | None:
    """Return when a query last committed a batch; None: never, or it cannot be seen."""
    try:
        commits = checkpoint.changed_s("commits").items()
    except OSError:
        return None
    return max((changed_s for name, changed_s in commits if name.isdecimal()), default=None)
