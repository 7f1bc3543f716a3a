"""When events happen and when they arrive, for any stretch of time, without any state.

Event ``n`` of the whole stream happens when the rate's count passes ``n``. It is event
``n // partitions`` of partition ``n % partitions``. Its delay comes from a generator of its
partition and block, so that two processes, or one process twice, see the same stream.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from slackwater.traffic.delays import Delays
from slackwater.traffic.gaps import EvenGaps, Gaps
from slackwater.traffic.randomness import BLOCK, block_generator
from slackwater.traffic.rates import Rate

Ints = NDArray[np.int64]

NEVER_US = 2**62  # event time of an event that the rate never reaches

_FEW_ROWS = 8192  # that are faster to sort than to halve again
_FIRST_LOOK_US = 50_000  # back from now, for the newest event
_STRIDE = 8  # events looked at together when a guess at an index is refined


class Reach(NamedTuple):
    """How far a reader has come: rows that arrived by a time and happened before a ceiling."""

    arrival_us: int
    ceiling_us: int = NEVER_US


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Events in the order of their arrival; one entry of each array an event."""

    partition: Ints
    index: Ints  # of the event in its partition, from zero
    event_us: Ints  # when it happened, microseconds since the epoch
    arrival_us: Ints  # when it arrived

    def __len__(self) -> int:
        return len(self.index)

    def part(self, chosen: slice | NDArray[np.intp]) -> "Arrivals":
        """Choose some of them."""
        columns = (self.partition, self.index, self.event_us, self.arrival_us)
        return Arrivals(*(column[chosen] for column in columns))


class Timeline:
    """The events of one stream.

    Parameters
    ----------
    rate
        Events per second of all partitions together, from the start on.
    delays
        Distribution of the time between an event and its arrival.
    gaps
        How evenly events follow each other; by default they do quite.
    seed, partitions
        The same seed and number of partitions give the same stream.
    start_us, stop_us
        First event time, and the first that is no longer there (None: no end).

    Examples
    --------
    >>> from slackwater.traffic import ConstantDelays, Rate
    >>> timeline = Timeline(Rate((0.0,), (10.0,)), ConstantDelays(0.15), seed=1, start_us=0)
    >>> timeline.arrived(200_000, 400_000).event_us.tolist()
    [100000, 200000]
    >>> timeline.count(400_000)
    3
    >>> timeline.cut(-1, 10_000_000, limit=3)
    449999
    """

    def __init__(
        self,
        rate: Rate,
        delays: Delays,
        *,
        seed: int,
        start_us: int,
        stop_us: int | None = None,
        partitions: int = 1,
        gaps: Gaps | None = None,
    ) -> None:
        self.rate = rate
        self.delays = delays
        self.gaps = gaps or EvenGaps()
        self.seed = seed
        self.start_us = start_us
        self.stop_us = stop_us
        self.partitions = partitions
        self._blocks: OrderedDict[tuple[int, int], Ints] = OrderedDict()  # 64 KiB each
        in_flight = delays.max_s * max(rate.per_second) / partitions / BLOCK
        self._blocks_kept = partitions * (4 + math.ceil(4 * in_flight))  # start, cut, now

    def event_us(self, number: Ints) -> Ints:
        """Return event times of events given by their number in the whole stream."""
        seconds = self.rate.inverse(self.gaps.places(self.seed, number))
        reached = np.isfinite(seconds)
        offsets = np.rint(np.where(reached, seconds, 0.0) * 1e6).astype(np.int64)
        return np.where(reached, self.start_us + offsets, NEVER_US)

    def happened(self, until_us: int) -> int:
        """Return how many events have an event time of at most ``until_us``."""
        if self.stop_us is not None:
            until_us = min(until_us, self.stop_us - 1)
        if until_us < self.start_us:
            return 0
        place = float(self.rate.count((until_us - self.start_us) / 1e6))
        guess = self.gaps.number_at(self.seed, place)
        return self._refine(guess, until_us)

    def count(self, until_us: int, partition: int | None = None) -> int:
        """Return how many events have arrived up to ``until_us``, of one partition or of all."""
        return self.handed_out(Reach(until_us), partition)

    def arrived(self, after_us: int, until_us: int, partition: int | None = None) -> Arrivals:
        """Return the events with ``after_us < arrival <= until_us``, of one partition or of all."""
        return self.released(Reach(after_us), Reach(until_us), partition)

    def frontier_us(self, until_us: int) -> int | None:
        """Return the largest event time that has arrived up to ``until_us``; None: none has.

        >>> from slackwater.traffic import ConstantDelays, Rate
        >>> timeline = Timeline(Rate((0.0,), (10.0,)), ConstantDelays(0.15), seed=1, start_us=0)
        >>> timeline.frontier_us(400_000), timeline.frontier_us(100_000)
        (200000, None)
        """
        happened = self.happened(until_us)
        if not happened:
            return None
        # Silence need not be looked through: by then the last event has arrived.
        last_us = int(self.event_us(np.array([happened - 1]))[0])
        until_us = min(until_us, last_us + self.delays.max_us)
        look_us = _FIRST_LOOK_US
        while True:
            seen = self.arrived(until_us - look_us, until_us).event_us
            newest_us = int(seen.max()) if len(seen) else None
            # An event that happened within the look can only have arrived within it.
            if newest_us is not None and newest_us >= until_us - look_us:
                return newest_us
            if until_us - look_us < self.start_us:
                return newest_us
            look_us *= 4

    def handed_out(self, reach: Reach, partition: int | None = None) -> int:
        """Return how many events are within a reach."""
        first, last = self._between(reach, reach)
        return sum(
            low + int(np.count_nonzero(self._times(p, low, high)[1] <= reach.arrival_us))
            for p, low, high in self._ranges(first, last, partition)
        )

    def released(self, after: Reach, until: Reach, partition: int | None = None) -> Arrivals:
        """Return the events within a reach and not within an earlier one.

        >>> from slackwater.traffic import ConstantDelays, Rate
        >>> timeline = Timeline(Rate((0.0,), (10.0,)), ConstantDelays(0.1), seed=1, start_us=0)
        >>> withheld = Reach(500_000, ceiling_us=200_000)
        >>> timeline.released(withheld, Reach(600_000, 400_000)).event_us.tolist()
        [200000, 300000]
        """
        first, last = self._between(after, until)
        parts = [
            self._released(p, low, high, after, until)
            for p, low, high in self._ranges(first, last, partition)
        ]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        order = np.argsort(columns[3], kind="stable")
        return Arrivals(*(column[order] for column in columns))

    def cut(self, after_us: int, until_us: int, limit: int) -> int:
        """Return the largest time up to ``until_us`` by which at most ``limit`` more rows arrive.

        Where so many rows arrive in the same microsecond that the limit allows none of them,
        they come together: a reader always gets on.
        """
        before = self.count(after_us)
        left_out = before + max(limit, 1)  # rank, from zero, of the first arrival left out
        if self.count(until_us) <= left_out:
            return until_us
        low_us, high_us, skipped = self._bracket(left_out)
        nearby = self.arrived(low_us, high_us).arrival_us
        boundary = int(nearby[left_out - skipped])
        taken = skipped + int(np.searchsorted(nearby, boundary))
        return boundary - 1 if taken > before else boundary

    def _bracket(self, rank: int) -> tuple[int, int, int]:
        """Return two times with the arrival of a rank (from zero) between them.

        And the rank's base: how many have arrived by the first.

        The k-th arrival comes no earlier than the k-th event happens, and no later than that
        plus the largest delay. So a short look finds it, however long the backlog is.
        """
        earliest = int(self.event_us(np.array([rank]))[0])
        low_us, high_us = earliest - 1, earliest + self.delays.max_us
        low, high = self.count(low_us), self.count(high_us)
        while high - low > _FEW_ROWS and high_us - low_us > 1:
            middle_us = (low_us + high_us) // 2
            middle = self.count(middle_us)
            if middle <= rank:
                low_us, low = middle_us, middle
            else:
                high_us, high = middle_us, middle
        return low_us, high_us, low

    def _between(self, after: Reach, until: Reach) -> tuple[int, int]:
        """Return numbers of the first event that may not be within one reach and past the last.

        The last is one that may be within another; all events before the first are within the one.
        """
        certain_us = min(after.arrival_us - self.delays.max_us, after.ceiling_us - 1)
        first = self.happened(certain_us)
        return first, max(first, self.happened(min(until.arrival_us, until.ceiling_us - 1)))

    def partition_range(self, partition: int, first: int, last: int) -> tuple[int, int]:
        """Return a partition's indices among the stream's events ``first <= number < last``."""
        step = self.partitions
        return -((partition - first) // step), -((partition - last) // step)

    def _ranges(self, first: int, last: int, partition: int | None) -> list[tuple[int, int, int]]:
        wanted = range(self.partitions) if partition is None else [partition]
        return [(p, *self.partition_range(p, first, last)) for p in wanted]

    def _released(
        self, partition: int, low: int, high: int, after: Reach, until: Reach
    ) -> tuple[Ints, Ints, Ints, Ints]:
        event_us, arrival_us = self._times(partition, low, high)
        before = (arrival_us <= after.arrival_us) & (event_us < after.ceiling_us)
        here = (arrival_us <= until.arrival_us) & (event_us < until.ceiling_us) & ~before
        index = np.flatnonzero(here) + low
        return np.full_like(index, partition), index, event_us[here], arrival_us[here]

    def _times(self, partition: int, low: int, high: int) -> Ints:
        """Return event times and arrival times of events ``low <= index < high`` of a partition."""
        if low >= high:
            return np.empty((2, 0), dtype=np.int64)
        first, last = low // BLOCK, (high - 1) // BLOCK
        blocks = [self._block(partition, block) for block in range(first, last + 1)]
        joined = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
        return joined[:, low - first * BLOCK : high - first * BLOCK]

    def _block(self, partition: int, block: int) -> Ints:
        """Return the times of one block, remembered because neighbours in time ask for it again."""
        place = (partition, block)
        if place in self._blocks:
            return self._blocks[place]
        index = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.int64)
        event_us = self.event_us(index * self.partitions + partition)
        rng = block_generator(self.seed, *place, "delays")
        delays = self.delays.draw_at_us(rng, event_us - self.start_us)
        self._blocks[place] = times = np.stack([event_us, event_us + delays])
        if len(self._blocks) > self._blocks_kept:
            self._blocks.popitem(last=False)
        return times

    def _refine(self, guess: int, until_us: int) -> int:
        """Refine a guess at ``happened`` to its value; event times are rounded, so look."""
        low = max(guess - _STRIDE // 2, 0)
        while True:
            times = self.event_us(np.arange(low, low + _STRIDE, dtype=np.int64))
            if low > 0 and times[0] > until_us:
                low = max(low - _STRIDE + 1, 0)  # one in common, so that it cannot swing
            elif times[-1] <= until_us:
                low += _STRIDE
            else:
                return low + int(np.searchsorted(times, until_us, side="right"))
