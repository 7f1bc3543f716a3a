"""Whether a source that does not tell what waits has more: told by how much its batches read."""

AS_MUCH = 0.5  # of the rows before: a batch right after another that reads so much had a backlog
MORE = 1.5  # times the rows before: a batch after a pause that reads so much follows the clock
PAUSE_EVERY = 8  # batches in a row, then one pause tells a backlog from a steady stream
PROBE_EVERY = 20  # batches that kept to their interval, then one right after another is tried


class Supply:
    """Watches one query whose source tells no backlog.

    A source with a limit of its own (so many files a batch) hands out as much however soon it is
    asked again; a stream hands out what has come since.

    >>> supply = Supply()
    >>> for rows in (100, 100, 100):
    ...     supply.take(rows)
    >>> supply.more
    True
    >>> supply.take(3)
    >>> supply.more
    False
    """

    def __init__(self) -> None:
        self.more = True  # until it is known
        self._at_once = True  # whether the next batch comes right after the last
        self._rows: float | None = None  # of the last batch
        self._run = 0  # batches since something was tried

    @property
    def pausing(self) -> bool:
        """Whether a pause is to tell a backlog from a steady stream."""
        return self._rows is not None and not self._at_once and self._run == 0

    def take(self, rows: float) -> None:
        """Take a batch that had rows."""
        before, self._rows = self._rows, rows
        self._run += 1
        if before is None:
            return
        if self._at_once:
            self.more = rows >= AS_MUCH * before
            if self.more and self._run >= PAUSE_EVERY:
                self.more, self._run = False, 0
            self._at_once = self.more
        elif self._run == 1:  # after the pause of one that had always more
            self.more = self._at_once = rows < MORE * before
        elif self._run >= PROBE_EVERY:
            self.more, self._at_once, self._run = True, True, 0

    def find_nothing(self) -> None:
        """Take it that there was nothing to read."""
        self.more = self._at_once = False
        self._run = 1
