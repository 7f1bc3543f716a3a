"""What happened lately, for those who watch a controller."""

from collections import deque
from itertools import islice
from typing import Any


class Recent:
    """A numbered log that forgets its oldest entries.

    >>> log = Recent(keep=2)
    >>> for query in "abc":
    ...     log.add("batch", query=query)
    >>> [entry["query"] for entry in log.since(0)], [entry["query"] for entry in log.since(2)]
    (['b', 'c'], ['c'])
    """

    def __init__(self, keep: int = 2000) -> None:
        self.last = 0  # number of the newest entry
        self._entries: deque[dict[str, Any]] = deque(maxlen=keep)

    def add(self, kind: str, **fields: Any) -> None:
        self.last += 1
        self._entries.append({"kind": kind, **fields})

    def since(self, number: int) -> list[dict[str, Any]]:
        """Entries after that number, oldest first."""
        fresh = min(max(0, self.last - number), len(self._entries))
        return list(islice(self._entries, len(self._entries) - fresh, None))
