"""The approximate queries of a fleet: their planners, and what these tell the policy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from slackwater.core.model import QuerySpec
from slackwater.engines.spark.approximate.planner import Planner
from slackwater.engines.spark.approximate.query import approximate
from slackwater.engines.spark.queries.agent import Agent
from slackwater.engines.spark.queries.registry import Registry
from slackwater.sampling import Promise


class Approximations:
    """Builds approximate queries and keeps their planners.

    Parameters
    ----------
    can_hold
        Whether gates can keep windows open.
    """

    def __init__(self, registry: Registry, agent: Agent, can_hold: bool) -> None:
        self.planners: list[Planner] = []
        self._registry = registry
        self._agent = agent
        self._can_hold = can_hold

    def build(self, df: DataFrame, **stated: Any) -> DataFrame:
        """Build one: see :func:`slackwater.engines.spark.approximate.query.approximate`."""
        found = approximate(df, can_hold=self._can_hold, **stated)
        found.planner.on_wait = partial(self._expect_wait, found.keeps_open)
        if found.keeps_open:
            found.planner.keeps_waits = lambda: self._agent.link.held
        self._agent.on_progress(found.planner.take)
        self.planners.append(found.planner)
        return found.results

    def close(self) -> None:
        for planner in self.planners:
            planner.close()

    def _expect_wait(self, keep_open: bool, name: str, wait_s: float) -> None:
        """Tell the policy that a window of this query closes so long after its end."""
        self._registry.revise(name, partial(_closing_later, wait_s, keep_open))


def _closing_later(wait_s: float, keep_open: bool, spec: QuerySpec) -> QuerySpec:
    deadlines = spec.deadlines
    inputs = tuple(replace(each, watermark_delay_s=wait_s) for each in deadlines.inputs)
    return replace(
        spec,
        deadlines=replace(deadlines, inputs=inputs),
        keep_open_s=wait_s if keep_open else 0.0,
    )


class ApproximateQueries:
    """The part of :class:`~slackwater.engines.spark.fleet.Fleet` that makes approximate queries."""

    _approximations: Approximations

    def approximate(
        self,
        df: DataFrame,
        *,
        time: str,
        window: str,
        aggregates: Mapping[str, str],
        slide: str | None = None,
        offset: str | None = None,
        by: Sequence[str] = (),
        error: float = 0.05,
        confidence: float = 0.95,
        sampler: str = "aion",
        arrival: str | None = None,
    ) -> DataFrame:
        """Return a windowed aggregate within a stated error that does not wait for stragglers.

        Write the result with ``writeStream`` in append mode, as ever. Each of its rows has the
        window, the columns of ``by``, for each aggregate its value and the ends of its interval
        (``name``, ``name_low``, ``name_high``), ``sampling_rate``, and ``bounded``: whether the
        interval is within the promised error.

        Parameters
        ----------
        df
            Rows of a source of ours, made with ``sampled=True``, with its column ``sample``; or
            of any other, see ``arrival``.
        time, window, slide, offset
            As for ``pyspark.sql.functions.window``.
        by
            Columns to group by; the promise holds for each group.
        aggregates
            ``{"views": "count()", "far": "mean(distance)"}``; also ``sum(column)``,
            ``ratio(column, column)``, ``quantile(column, 0.95)``.
        error, confidence
            ``P(relative error <= error) >= confidence``; default 0.05 and 0.95.
        sampler
            ``aion``, or one of those that it is compared with.
        arrival
            For any other source: the column with the time at which each row arrived. Rows are
            then sampled by a filter inside Spark, and windows are kept open by the gate, for no
            longer than half their slide.
        """
        return self._approximations.build(
            df,
            time=time,
            window=window,
            slide=slide,
            offset=offset,
            by=by,
            aggregates=aggregates,
            promise=Promise(error, confidence),
            sampler=sampler,
            arrival=arrival,
        )

    @property
    def planners(self) -> list[Planner]:
        """Return the planners of approximate queries."""
        return self._approximations.planners
