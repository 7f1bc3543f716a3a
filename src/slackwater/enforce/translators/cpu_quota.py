"""CPU quotas of groups."""

import os
from collections.abc import Sequence
from typing import ClassVar

from slackwater.core.entities import Scale
from slackwater.enforce.normalise import normalise
from slackwater.enforce.settings import GroupQuota, Setting
from slackwater.enforce.translators._grouping import (
    By,
    GroupPriority,
    check_by,
    check_group_priority,
    groups_of,
    members,
)
from slackwater.enforce.translators.base import Ranked, Translator, check_range

LEAST_CPUS = 0.01  # the kernel takes 1 ms of every 100


class CpuQuota(Translator):
    """A control group for each query (or operator) that may use so much CPU and no more.

    Unlike shares a quota also holds when the machine is idle: what is not used is lost.

    Parameters
    ----------
    by
        What a group is: ``query`` or ``operator``.
    groups
        Priority of a group: the ``highest`` of its operators', their ``sum``, or all ``equal``.
    best, worst
        CPUs for the highest and the lowest priority; default: all of the machine, a twentieth.
    """

    name = "cpu-quota"
    needs: ClassVar = frozenset({"groups"})

    def __init__(
        self,
        by: By = "query",
        groups: GroupPriority = "highest",
        best: float | None = None,
        worst: float | None = None,
    ) -> None:
        check_by(by)
        check_group_priority(groups)
        cpus = float(os.cpu_count() or 1)
        self.by: By = by
        self.groups: GroupPriority = groups
        self.best = cpus if best is None else best
        self.worst = cpus / 20 if worst is None else worst
        check_range("best", self.best, LEAST_CPUS, cpus)
        check_range("worst", self.worst, LEAST_CPUS, self.best)

    def _plan(self, ranked: Sequence[Ranked], scale: Scale) -> list[Setting]:
        priorities = groups_of(ranked, self.by, self.groups)
        wanted = normalise(priorities, scale, self.worst, self.best)
        limits: list[Setting] = [GroupQuota(group, value) for group, value in wanted.items()]
        return limits + members(ranked, self.by)
