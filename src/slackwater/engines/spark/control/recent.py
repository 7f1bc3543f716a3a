"""What happened lately, for those who watch."""

from collections import deque
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """A numbered log that forgets its oldest entries.

    >>> log = Recent[str](keep=2)
    >>> for query in "abc":
    ...     log.add(query)
    >>> log.since(0), log.since(2)
    (['b', 'c'], ['c'])
    """

    def __init__(self, keep: int = 2000) -> None:
        self.last = 0  # number of the newest entry
        self._entries: deque[T] = deque(maxlen=keep)

    def add(self, entry: T) -> None:
        """Take the next entry."""
        self.last += 1
        self._entries.append(entry)

    def since(self, number: int) -> list[T]:
        """List the entries after that number, oldest first."""
        fresh = min(max(0, self.last - number), len(self._entries))
        return list(islice(self._entries, len(self._entries) - fresh, None))
