"""Shares between queries, nice inside each."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from slackwater.core.entities import Scale
from slackwater.enforce.settings import Setting
from slackwater.enforce.translators._grouping import (
    GroupPriority,
    check_group_priority,
    group_of,
    groups_of,
    members,
)
from slackwater.enforce.translators.base import Ranked, Translator
from slackwater.enforce.translators.cpu_shares import CpuShares
from slackwater.enforce.translators.nice import WORST, Nice


class SharesNice(Translator):
    """A control group for each query, and nice values among its operators.

    Nice values count inside a group only, so each query has the whole range to itself.

    Parameters
    ----------
    groups
        Priority of a query: ``equal`` to all others, the ``highest`` of its operators', their
        ``sum``.
    weights
        CPU time of queries (``engine/query``) in relation to each other; wins over ``groups``, and
        a query that is not named has 1.
    best, worst
        Nice values of the highest and the lowest priority in a query.
    least_share
        Of a query, where the most important has 1024; with ``groups`` other than ``equal``.
    """

    name = "shares-nice"
    needs: ClassVar = frozenset({"nice", "groups"})

    def __init__(
        self,
        groups: GroupPriority = "equal",
        weights: Mapping[str, float] | None = None,
        best: int = 0,
        worst: int = WORST,
        least_share: int = 16,
    ) -> None:
        check_group_priority(groups)
        self.groups: GroupPriority = groups
        self.weights = dict(weights or {})
        self._shares = CpuShares(by="query", groups=groups, worst=least_share)
        self._nice = Nice(best, worst)

    def _plan(self, ranked: Sequence[Ranked], scale: Scale) -> list[Setting]:
        queries: dict[str, list[Ranked]] = {}
        for each in ranked:
            queries.setdefault(each.query, []).append(each)
        settings = self._between(ranked, scale) + members(ranked, "query")
        for inside in queries.values():
            settings += self._nice.plan(inside, scale)
        return settings

    def _between(self, ranked: Sequence[Ranked], scale: Scale) -> list[Setting]:
        if self.weights or self.groups == "equal":
            weights = {
                group_of(each, "query"): self.weights.get(each.query, 1.0) for each in ranked
            }
            return self._shares.shares(weights, "ratio")
        return self._shares.shares(groups_of(ranked, "query", self.groups), scale)
