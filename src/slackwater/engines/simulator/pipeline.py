"""Queries of an engine that runs events one at a time through operators."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slackwater.core.errors import UsageError
from slackwater.engines.simulator.arrivals import Bursts
from slackwater.engines.simulator.windowed import WindowedQuery
from slackwater.traffic import parse_delays


@dataclass(frozen=True, slots=True)
class PipelineOperator:
    """One step of a pipeline."""

    name: str
    cost_s: float  # of one event, on a core of its own
    selectivity: float = 1.0  # events out for one in
    blocked_s: float = 0.0  # for one event: its thread waits for something else than a core
    keeps: bool = False  # its events stay until their window ends: no partial aggregates


@dataclass(frozen=True, kw_only=True)
class PipelineQuery(WindowedQuery):
    """One query: a chain of operators, the last of which is a window.

    Parameters
    ----------
    rate, delays
        Events per second, and their network delays as :func:`slackwater.traffic.parse_delays`
        reads them.
    bursts
        Where events do not come evenly: its own, at other times than other queries'.
    streams
        Inputs that a join brings together: a window is complete when the last of them says so.
    starts_s
        After the engine: when its source begins.
    event_bytes, state_bytes
        What a queued event and what the partial aggregates of an open window take in memory.
    rows_out
        Of a window's result.
    """

    operators: tuple[PipelineOperator, ...]
    rate: float = 10_000.0
    delays: str = "uniform:0:300ms"
    bursts: Bursts | None = None
    streams: int = 1
    starts_s: float = 0.0
    event_bytes: float = 1000.0
    state_bytes: float = 100_000.0
    rows_out: int = 100
    max_wait_s: float = 60.0

    def __post_init__(self) -> None:
        if not self.operators:
            raise UsageError(f"{self.name} has no operators")
        if self.rate <= 0 or self.streams < 1:
            raise UsageError(f"{self.name} needs a rate above zero and at least one stream")

    @property
    def delay_s(self) -> float:
        return parse_delays(self.delays).max_s if self.watermark_s is None else self.watermark_s

    @cached_property
    def reach(self) -> NDArray[np.float64]:
        """Events that come to each operator for one at the source.

        >>> chain = (PipelineOperator("a", 1, 0.5), PipelineOperator("b", 1))
        >>> PipelineQuery(name="q", operators=chain).reach
        array([1. , 0.5])
        """
        kept = np.array([1.0, *(each.selectivity for each in self.operators[:-1])])
        return np.cumprod(kept, dtype=np.float64)

    @cached_property
    def work_s(self) -> NDArray[np.float64]:
        """Time on a core at each operator, for one event at the source."""
        work_s: NDArray[np.float64] = self.reach * [each.cost_s for each in self.operators]
        return work_s

    @cached_property
    def blocked_s(self) -> NDArray[np.float64]:
        """Time that each operator's thread waits, for one event at the source."""
        found: NDArray[np.float64] = self.reach * [each.blocked_s for each in self.operators]
        return found

    @cached_property
    def window_selectivity(self) -> float:
        """Rows of a result for one event of its window."""
        reaching = self.rate * self.window.slide_s * float(self.reach[-1])
        return min(1.0, self.rows_out / reaching)


@dataclass(frozen=True, slots=True)
class PipelineSegment:
    """The part of a query that one node runs."""

    query: PipelineQuery
    first: int = 0
    last: int | None = None  # exclusive; None: to the end

    @property
    def part(self) -> slice:
        return slice(self.first, self.last)

    @property
    def is_first(self) -> bool:
        return self.first == 0

    @property
    def is_last(self) -> bool:
        return self.last is None or self.last == len(self.query.operators)
