"""Queries of an engine that runs events one at a time through operators."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slackwater.core.errors import UsageError
from slackwater.core.model import QuerySpec
from slackwater.core.windows import Deadlines, InputStream, Window, WindowKind
from slackwater.traffic import parse_delays


@dataclass(frozen=True, slots=True)
class Operator:
    """One step of a pipeline."""

    name: str
    cost_s: float  # of one event, on a core of its own
    selectivity: float = 1.0  # events out for one in


@dataclass(frozen=True, kw_only=True)
class PipelineQuery:
    """One query: a chain of operators, the last of which is a window with partial aggregates.

    Parameters
    ----------
    rate, delays
        Events per second, and their network delays as :func:`slackwater.traffic.parse_delays`
        reads them.
    window_s, slide_s, phase_s
        Windows start at phase + n * slide; without a slide they tumble.
    watermark_s
        The watermark's delay; None: the largest network delay.
    event_bytes, state_bytes
        What a queued event and what the state of an open window take in memory.
    rows_out
        Of a window's result.
    """

    name: str
    operators: tuple[Operator, ...]
    rate: float = 10_000.0
    delays: str = "uniform:0:300ms"
    window_s: float = 3.0
    slide_s: float | None = None
    phase_s: float = 0.0
    watermark_s: float | None = None
    event_bytes: float = 1000.0
    state_bytes: float = 100_000.0
    rows_out: int = 100
    priority: float = 1.0
    max_wait_s: float = 60.0

    def __post_init__(self) -> None:
        if not self.operators:
            raise UsageError(f"{self.name} has no operators")

    @property
    def delay_s(self) -> float:
        return parse_delays(self.delays).max_s if self.watermark_s is None else self.watermark_s

    @property
    def window(self) -> Window:
        slide_s = self.window_s if self.slide_s is None else self.slide_s
        kind: WindowKind = "tumbling" if slide_s == self.window_s else "sliding"
        return Window(kind, self.window_s, slide_s, self.phase_s)

    @property
    def spec(self) -> QuerySpec:
        inputs = (InputStream("simulated", "event_time", self.delay_s),)
        deadlines = Deadlines((self.window,), inputs)
        return QuerySpec(self.name, self.priority, self.max_wait_s, deadlines)

    @cached_property
    def reach(self) -> NDArray[np.float64]:
        """Events that come to each operator for one at the source.

        >>> PipelineQuery(name="q", operators=(Operator("a", 1, 0.5), Operator("b", 1))).reach
        array([1. , 0.5])
        """
        kept = np.array([1.0, *(each.selectivity for each in self.operators[:-1])])
        return np.cumprod(kept, dtype=np.float64)

    @cached_property
    def work_s(self) -> NDArray[np.float64]:
        """Time on a core at each operator, for one event at the source."""
        work_s: NDArray[np.float64] = self.reach * [each.cost_s for each in self.operators]
        return work_s
