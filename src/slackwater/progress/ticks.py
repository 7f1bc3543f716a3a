"""Sources that deliver at fixed times: once a second, or whenever a producer flushes."""

import math
from collections import deque
from itertools import pairwise

KEPT = 64  # reads
LEAST = 8  # steps of the newest event before a period is believed
SHORTEST_S = 0.2  # period: what comes more often is a stream
EXACT_S = 0.02  # how far from its grid an event may be
STALE = 0.25  # of a period: a read that finds nothing newer for so long saw no stream
MISSED_S = 0.1  # and one that was asked for an event so long after its time
LATEST = 0.25  # of a period: how late a delivery may be
STALE_READS = 0.15  # of all reads: fewer are chance


class Ticks:
    """Learns period, phase and lag of deliveries from reads alone.

    The newest event times that reads find lie on a grid. Each read says more: what it found had
    arrived by then, what the next one found had not arrived before. A stream that is always read
    at the same phase lies on a grid, too; but its newest event is never old.

    Examples
    --------
    >>> ticks = Ticks()
    >>> for read in range(30):
    ...     at_s = 100.0 + 0.7 * read
    ...     ticks.observe(at_s, math.floor(at_s - 0.4) + 0.3)  # each 0.1 s after its last event
    >>> ticks.period_s, round(ticks.next_s(200.0), 1)
    (1.0, 200.4)
    """

    def __init__(self) -> None:
        self._reads: deque[tuple[float, float]] = deque(maxlen=KEPT)  # when, newest event
        self._misses: deque[tuple[float, float]] = deque(maxlen=KEPT)  # when, what was asked for
        self.period_s: float | None = None  # None: it does not tick, as far as is known
        # Rows came that were no newer than others before: event times lie on a grid (whole seconds,
        # say), deliveries do not.
        self.between = False
        self._lag_s = math.inf  # from an event to its delivery

    def observe(self, at_s: float, newest_s: float) -> None:
        """Take the newest event time that a read found, which had rows."""
        self.between |= bool(self._reads) and newest_s <= self._reads[-1][1]
        self._take(at_s, newest_s)

    def _take(self, at_s: float, newest_s: float) -> None:
        fits = self._fits(newest_s)
        self._reads.append((at_s, newest_s))
        if not fits:  # what fits may go on looking like a stream, once it is read at the right time
            self.period_s, self._lag_s = self._find_period(), math.inf
        if self.period_s is not None:
            self._find_lag(self.period_s)

    def _fits(self, newest_s: float) -> bool:
        if self.period_s is None:
            return False
        steps = (newest_s - self._reads[-1][1]) / self.period_s
        return abs(steps - round(steps)) * self.period_s <= EXACT_S

    def find_nothing(self, at_s: float) -> None:
        """Take it that a read found nothing newer than the one before it."""
        if self._reads:
            self._take(at_s, self._reads[-1][1])

    def miss(self, at_s: float, event_s: float) -> None:
        """Take it that nothing of that time or later had been delivered."""
        self._misses.append((at_s, event_s))
        if self.period_s is not None:
            self._find_lag(self.period_s)

    def next_s(self, event_s: float) -> float:
        """Return when an event of that time or later is delivered."""
        assert self.period_s is not None, "it does not tick"
        return self._carrier_s(event_s, self.period_s) + self._lag_s

    def delivery_s(self, from_s: float) -> float:
        """Return when the first delivery comes from then on."""
        assert self.period_s is not None, "it does not tick"
        some_s = self._reads[-1][1] + self._lag_s
        return some_s + math.ceil((from_s - some_s) / self.period_s) * self.period_s

    def _carrier_s(self, event_s: float, period_s: float) -> float:
        """Return the newest event of the delivery that brings an event of that time or later."""
        newest_s = self._reads[-1][1]
        return newest_s + math.ceil((event_s - newest_s - EXACT_S) / period_s) * period_s

    def _find_period(self) -> float | None:
        events = sorted({newest_s for _, newest_s in self._reads})
        steps = [b - a for a, b in pairwise(events) if b - a > EXACT_S]
        if len(steps) < LEAST:
            return None
        period_s = _common_divisor(steps)
        if period_s < SHORTEST_S:
            return None
        lags_s = [at_s - newest_s for at_s, newest_s in self._reads]
        fresh_s = min(lags_s) + STALE * period_s
        stale = sum(lag_s > fresh_s for lag_s in lags_s)
        stale += sum(at_s - event_s > min(lags_s) + MISSED_S for at_s, event_s in self._misses)
        return period_s if stale >= STALE_READS * len(lags_s) else None

    def _find_lag(self, period_s: float) -> None:
        """Find when deliveries come: after all reads that missed one, before all that found it."""
        found_s = min(self._lag_s, *(at_s - newest_s for at_s, newest_s in self._reads))
        missed_s = [at_s - (newest_s + period_s) for at_s, newest_s in self._reads]
        missed_s += [at_s - self._carrier_s(event_s, period_s) for at_s, event_s in self._misses]
        # One that is off by more belongs to a delivery that did not come at all.
        latest_s = max((late_s for late_s in missed_s if late_s < LATEST * period_s), default=0.0)
        self._lag_s = max(found_s, latest_s)


def _common_divisor(steps: list[float]) -> float:
    """Return the largest length of which all steps are multiples, nearly.

    >>> round(_common_divisor([3.0, 2.001, 5.0, 1.999]), 2), _common_divisor([1.0, 0.37]) < 0.2
    (1.0, True)
    """
    divisor = steps[0]
    for step in steps[1:]:
        larger, smaller = max(step, divisor), min(step, divisor)
        while smaller > EXACT_S and smaller >= SHORTEST_S:
            rest = larger - round(larger / smaller) * smaller
            larger, smaller = smaller, abs(rest)
        if smaller > EXACT_S:
            return smaller  # too short to be one
        divisor = larger
    # The mean over all is more exact than any one.
    return sum(steps) / sum(round(step / divisor) for step in steps)
