"""The approximate queries of a fleet: their planners, and what these tell the policy."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from slackwater.engines.spark.approximate.planner import Planner
from slackwater.engines.spark.approximate.query import approximate
from slackwater.engines.spark.queries.agent import Agent
from slackwater.engines.spark.queries.registry import Member


class FleetApproximate:
    """Builds approximate queries and keeps their planners.

    Parameters
    ----------
    can_hold
        Whether gates can keep windows open.
    on_progress
        Lets a planner hear every progress event.
    """

    def __init__(
        self,
        members: dict[str, Member],
        agent: Agent,
        can_hold: bool,
        on_progress: Callable[[Callable[[str, dict[str, Any]], None]], None],
    ) -> None:
        self.planners: list[Planner] = []
        self._members = members
        self._agent = agent
        self._can_hold = can_hold
        self._on_progress = on_progress

    def build(self, df: DataFrame, **stated: Any) -> DataFrame:
        """See :func:`slackwater.engines.spark.approximate.query.approximate`."""
        found = approximate(df, can_hold=self._can_hold, **stated)
        found.planner.on_wait = partial(self._expect_wait, found.keeps_open)
        if found.keeps_open:
            found.planner.keeps_waits = lambda: self._agent.link.held
        self._on_progress(found.planner.take)
        self.planners.append(found.planner)
        return found.results

    def close(self) -> None:
        for planner in self.planners:
            planner.close()

    def _expect_wait(self, keep_open: bool, name: str, wait_s: float) -> None:
        """A window of this query closes so long after its end: the policy should know."""
        member = self._members[name]
        deadlines = member.spec.deadlines
        inputs = tuple(replace(each, watermark_delay_s=wait_s) for each in deadlines.inputs)
        member.spec = replace(
            member.spec,
            deadlines=replace(deadlines, inputs=inputs),
            keep_open_s=wait_s if keep_open else 0.0,
        )
        self._agent.add(member.spec)
