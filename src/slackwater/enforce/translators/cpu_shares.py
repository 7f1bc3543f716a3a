"""CPU shares of groups."""

from collections.abc import Sequence
from typing import ClassVar

from slackwater.core.entities import Scale
from slackwater.enforce.normalise import normalise
from slackwater.enforce.settings import GroupShare, Setting
from slackwater.enforce.translators._grouping import (
    By,
    GroupPriority,
    check_by,
    check_group_priority,
    groups_of,
    members,
)
from slackwater.enforce.translators.base import Ranked, Translator, check_range

LEAST, MOST = 2, 262144  # the kernel's bounds of cpu.shares


class CpuShares(Translator):
    """A control group for each operator (or query), with a share of the CPU by its priority.

    Finer than nice, which has 40 values.

    Parameters
    ----------
    by
        What a group is: ``operator`` or ``query``.
    groups
        Priority of a group: the ``highest`` of its operators', their ``sum``, or all ``equal``.
    best, worst
        Shares of the highest and the lowest priority; any other thread of the engine has 1024.
    """

    name = "cpu-shares"
    needs: ClassVar = frozenset({"groups"})

    def __init__(
        self,
        by: By = "operator",
        groups: GroupPriority = "highest",
        best: int = 1024,
        worst: int = 16,
    ) -> None:
        check_by(by)
        check_group_priority(groups)
        check_range("best", best, LEAST, MOST)
        check_range("worst", worst, LEAST, best)
        self.by: By = by
        self.groups: GroupPriority = groups
        self.best = best
        self.worst = worst

    def _plan(self, ranked: Sequence[Ranked], scale: Scale) -> list[Setting]:
        return self.shares(groups_of(ranked, self.by, self.groups), scale) + members(
            ranked, self.by
        )

    def shares(self, priorities: dict[str, float], scale: Scale) -> list[Setting]:
        """Return the share of each group."""
        wanted = normalise(priorities, scale, self.worst, self.best)
        return [GroupShare(group, max(LEAST, round(value))) for group, value in wanted.items()]
