"""What an offset remembers of sampling, so that a replay hands out the same rows alike.

The *ceiling* is the event time from which on rows are withheld: the end of the first window that
must not close yet. Spark's watermark follows the largest event time that it is given, so a window
closes when the ceiling moves past its end, and not before. Which plan holds for a cell is settled
when its first row may be handed out, and is written here.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.sampling.grid import Grid, Ints
from slackwater.sampling.plan import CellPlan, Plan

Floats = NDArray[np.float64]

KEEP_US = 60_000_000  # plans of cells that ended longer ago than this (and a window) are forgotten


@dataclass(frozen=True)
class Weighed:
    """What becomes of some rows; one entry of each array for a row."""

    keep: NDArray[np.bool_]  # whether the row is in the sample
    rates: Floats  # the probability that it was
    weights: Floats  # (rows, windows): how many rows it stands for, 0: too late for the window
    doubts: Floats  # (rows, windows): relative standard deviation of that weight
    usual: Floats  # (rows, 2): least and most rows of a window that raise no suspicion


@dataclass(frozen=True)
class Ledger:
    """The ceiling, and the plans of cells by the end of the first cell that they hold for.

    >>> plan = Plan(Grid(3_000_000, 3_000_000), CellPlan(wait_us=500_000), 0)
    >>> ledger = Ledger.begin(plan, now_us=10_000_000)
    >>> ledger.ceiling_us, ledger.advance(plan, 12_400_000).ceiling_us
    (12000000, 12000000)
    >>> ledger.advance(plan, 12_500_000).ceiling_us
    15000000
    """

    grid: Grid
    ceiling_us: int
    plans: tuple[tuple[int, CellPlan], ...]  # (end of the first cell, plan), ascending

    @classmethod
    def begin(cls, plan: Plan, now_us: int) -> "Ledger":
        """Begin one for a source that has not handed out anything under a ceiling so far."""
        ceiling_us = plan.grid.end_after(now_us - plan.cell.wait_us)
        return cls(plan.grid, ceiling_us, ((-(2**62), plan.cell),))

    def advance(self, plan: Plan | None, now_us: int) -> "Ledger":
        """Let the ceiling rise past all windows that may close by now."""
        if self.ceiling_us + self._longest_wait_us(self.ceiling_us) > now_us:
            return self
        newest = self.plans[-1][1] if plan is None else plan.cell
        next_us = self.ceiling_us + self.grid.slide_us
        plans = self.plans
        if newest != plans[-1][1]:
            plans = (*plans, (next_us, newest))
        plans = _pruned(plans, self.ceiling_us - self._memory_us)
        after = Ledger(self.grid, next_us, plans)
        return replace(after, ceiling_us=after._reached_us(newest, now_us))

    def _reached_us(self, newest: CellPlan, now_us: int) -> int:
        """Return how far the ceiling can rise: one by one past windows with older cells."""
        ceiling_us = self.ceiling_us
        for _ in range(self.grid.windows_per_event):
            if ceiling_us + self._longest_wait_us(ceiling_us) > now_us:
                return ceiling_us
            ceiling_us += self.grid.slide_us
        return max(ceiling_us, self.grid.end_after(now_us - newest.wait_us))

    def plan_of(self, cell_end_us: int) -> CellPlan:
        """Return the plan of the cell with this end."""
        place = bisect_right([first for first, _ in self.plans], cell_end_us)
        return self.plans[max(place - 1, 0)][1]

    def _longest_wait_us(self, end_us: int) -> int:
        """Return the longest wait of the cells in a window: rows in time for one must count."""
        first_us = end_us - (self.grid.windows_per_event - 1) * self.grid.slide_us
        cells = range(first_us, end_us + 1, self.grid.slide_us)
        return max(self.plan_of(cell_us).wait_us for cell_us in cells)

    def weigh(self, event_us: Ints, arrival_us: Ints, chances: Floats) -> Weighed:
        """Sample rows and weigh those that are kept.

        Parameters
        ----------
        event_us, arrival_us
            When the rows happened and when they arrived.
        chances
            A number between 0 and 1 for each that depends on the row alone.
        """
        ends_us = self.grid.ends_after(event_us)
        if len(self.plans) == 1:
            return self._weigh_alike(self.plans[0][1], ends_us, event_us, arrival_us, chances)
        firsts = np.array([first for first, _ in self.plans])
        which = np.maximum(np.searchsorted(firsts, ends_us, side="right") - 1, 0)
        present = np.unique(which).tolist()
        if len(present) < 2:
            plan = self.plans[present[0] if present else 0][1]
            return self._weigh_alike(plan, ends_us, event_us, arrival_us, chances)
        parts = []
        for number in present:
            mine = np.flatnonzero(which == number)
            plan, times = self.plans[number][1], (ends_us[mine], event_us[mine], arrival_us[mine])
            parts.append((mine, self._weigh_alike(plan, *times, chances[mine])))
        return _assembled(parts, len(event_us))

    def to_json(self) -> dict[str, Any]:
        return {
            "grid": self.grid.numbers(),
            "ceiling": self.ceiling_us,
            "plans": [[first, plan.numbers()] for first, plan in self.plans],
        }

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> "Ledger":
        plans = tuple((int(first), CellPlan.of_numbers(each)) for first, each in found["plans"])
        return cls(Grid(*found["grid"]), int(found["ceiling"]), plans)

    @property
    def _memory_us(self) -> int:
        return self.grid.size_us + KEEP_US

    def _weigh_alike(
        self, plan: CellPlan, ends_us: Ints, event_us: Ints, arrival_us: Ints, chances: Floats
    ) -> Weighed:
        """Weigh rows whose cells have the same plan."""
        windows, slide_us = self.grid.windows_per_event, self.grid.slide_us
        before_end_us = ends_us - 1 - event_us
        rates = _by_substream(plan.rates, before_end_us, self.grid, beyond=plan.rates[-1])
        weights, doubts = (np.empty((len(event_us), windows)) for _ in range(2))
        late_us = arrival_us - ends_us - plan.wait_us
        for window in range(windows):
            until_end_us = before_end_us + window * slide_us
            shares = _by_substream(plan.shares, until_end_us, self.grid, beyond=1.0)
            in_time = late_us <= window * slide_us
            weights[:, window] = in_time / (rates * shares)
            doubts[:, window] = _by_substream(plan.doubts, until_end_us, self.grid, beyond=0.0)
        usual = np.broadcast_to(np.array(plan.usual, dtype=np.float64), (len(event_us), 2))
        return Weighed(chances < rates, rates, weights, doubts, usual)


def _assembled(parts: list[tuple[NDArray[np.intp], Weighed]], rows: int) -> Weighed:
    """Put together what was found of some of the rows and of others, in the order of all."""
    order = np.empty(rows, dtype=np.intp)
    order[np.concatenate([mine for mine, _ in parts])] = np.arange(rows)
    names = [each.name for each in fields(Weighed)]
    return Weighed(
        **{n: np.concatenate([getattr(part, n) for _, part in parts])[order] for n in names}
    )


def _by_substream(
    values: Iterable[float], before_end_us: Ints, grid: Grid, beyond: float
) -> Floats:
    """Return each row's value: that of its sub-stream, counted back from an end."""
    table = np.array([*values, beyond], dtype=np.float64)
    return table[np.minimum(before_end_us // grid.substream_us, len(table) - 1)]


def _pruned(
    plans: tuple[tuple[int, CellPlan], ...], before_us: int
) -> tuple[tuple[int, CellPlan], ...]:
    """Drop plans whose cells all ended before a time."""
    firsts = [first for first, _ in plans]
    return plans[max(bisect_right(firsts, before_us) - 1, 0) :]


def chances(seed: int, partition: int, index: Ints) -> Floats:
    """Return numbers between 0 and 1, functions of a row's place alone (SplitMix64).

    >>> chances(1, 0, np.array([0, 1, 0])).round(3).tolist()
    [0.429, 0.362, 0.429]
    """
    start = (seed * 0x632BE59BD9B4E019 + partition * 0xD1B54A32D192ED03) % 2**64
    with np.errstate(over="ignore"):
        mixed = index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * math.ldexp(1.0, -53)
