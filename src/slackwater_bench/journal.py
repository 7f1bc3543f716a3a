"""Results on disk after every trial, and what of them need not be run again."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slackwater.common.files import replace_text
from slackwater.core.errors import UsageError

Entry = dict[str, Any]  # of a result: one run


class Journal:
    """Keeps a result in a file.

    Parameters
    ----------
    path
        The file; ``None``: nothing is kept.
    resume
        Whether trials that the file holds count as done.
    """

    def __init__(self, path: Path | None = None, resume: bool = False) -> None:
        if path is not None and path.name == "-":
            raise UsageError("--json takes a file here: it is written after every trial")
        if resume and path is None:
            raise UsageError("--resume needs --json FILE: the file to go on from")
        self.path = path
        self._old: dict[str, Any] = _read(path) if resume and path is not None else {}

    def find(self, section: str, wanted: Callable[[Entry], bool]) -> Entry | None:
        """Return the first earlier entry of a section that is wanted and did not fail."""
        return next(filter(wanted, self.entries(section)), None)

    def entries(self, section: str) -> list[Entry]:
        """Return all earlier entries of a section that did not fail."""
        found = self._old.get(section)
        known = [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []
        return [entry for entry in known if "error" not in entry]

    def save(self, result: Mapping[str, Any]) -> None:
        """Write what there is so far."""
        if self.path is None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_text(self.path, json.dumps(result, indent=1) + "\n")
        except OSError as error:
            raise UsageError(f"cannot write {self.path}: {error.strerror}") from None


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise UsageError(f"{path} is not JSON ({error}); leave out --resume") from None
    if not isinstance(found, dict):
        raise UsageError(f"{path} is not a result of a benchmark; leave out --resume")
    return found
