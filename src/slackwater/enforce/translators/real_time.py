"""Real-time round robin."""

from collections.abc import Sequence
from typing import ClassVar

from slackwater.core.entities import Scale
from slackwater.core.errors import UsageError
from slackwater.enforce.normalise import normalise
from slackwater.enforce.settings import Scheduling, Setting
from slackwater.enforce.translators.base import Ranked, Translator, check_range

LEAST, MOST = 1, 99


class RealTime(Translator):
    """The most important operators run before everything else, in turn; the others as ever.

    A real-time thread gives way to none but its betters. The kernel keeps a twentieth of each
    second for the rest of the machine (``sched_rt_runtime_us``), so only a part of the operators
    may be made real-time.

    Parameters
    ----------
    share
        Part of the operators, from the most important down, that is made real-time.
    best, worst
        Real-time priorities of these.
    """

    name = "real-time"
    needs: ClassVar = frozenset({"real-time"})

    def __init__(self, share: float = 0.25, best: int = 20, worst: int = LEAST) -> None:
        if not 0 < share <= 1:
            raise UsageError(f"share must be above 0 and at most 1, not {share:g}")
        check_range("best", best, LEAST, MOST)
        check_range("worst", worst, LEAST, best)
        self.share = share
        self.best = best
        self.worst = worst

    def _plan(self, ranked: Sequence[Ranked], scale: Scale) -> list[Setting]:
        order = sorted(ranked, key=lambda each: -each.priority)
        urgent = order[: max(1, round(self.share * len(order)))]
        wanted = normalise(
            {each.name: each.priority for each in urgent}, scale, self.worst, self.best
        )
        chosen = {each.name for each in urgent}
        return [
            Scheduling(thread, "round-robin", round(wanted[each.name]))
            if each.name in chosen
            else Scheduling(thread, "other")
            for each in ranked
            for thread in each.operator.threads
        ]
