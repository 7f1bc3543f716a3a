"""Processes below another."""

from collections import defaultdict
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """All processes that ``pid`` and its children started and that still run."""
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children[parent].append(int(folder.name))
    found: list[int] = []
    pending = list(children[pid])
    while pending:
        child = pending.pop()
        found.append(child)
        pending += children[child]
    return sorted(found)
