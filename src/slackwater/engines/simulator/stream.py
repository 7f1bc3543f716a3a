"""An input stream at a moment: what has arrived, and how far it has come."""

from slackwater.traffic import Timeline


class SimulatedStream:
    """Asks a timeline the questions that a source answers.

    >>> from slackwater.traffic import Traffic
    >>> stream = SimulatedStream(Traffic(start_s=0, rate="10", delays="constant:150ms").timeline())
    >>> stream.arrived(0.4), stream.frontier_s(0.4), stream.frontier_s(0.1)
    (3, 0.2, None)
    """

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._start_s = timeline.start_us / 1e6
        stop_us = timeline.stop_us
        self._silent = stop_us is not None and stop_us <= timeline.start_us

    def arrived(self, until_s: float) -> int:
        """Return how many rows have arrived up to then."""
        return 0 if self._silent else self._timeline.count(round(until_s * 1e6))

    def frontier_s(self, until_s: float) -> float | None:
        """Return the largest event time among the rows up to then; ``None`` without any."""
        newest_us = self._timeline.frontier_us(round(until_s * 1e6))
        return None if newest_us is None else newest_us / 1e6

    def limited_s(self, after_s: float, until_s: float, rows: int) -> float:
        """Return the latest moment up to ``until_s`` by which at most so many more rows came."""
        return self._timeline.cut(round(after_s * 1e6), round(until_s * 1e6), rows) / 1e6
