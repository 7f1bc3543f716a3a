"""Nice values."""

from collections.abc import Sequence
from typing import ClassVar

from slackwater.core.entities import Scale
from slackwater.enforce.normalise import nice_by_ratio, normalise
from slackwater.enforce.settings import Nice as NiceValue
from slackwater.enforce.settings import Setting
from slackwater.enforce.translators.base import Ranked, Translator, check_range

BEST, WORST = -20, 19


class Nice(Translator):
    """Each thread gets the nice value of its operator.

    The engine's own threads (garbage collection, network, metrics) get the best: beside busy
    threads above them they would starve, and the engine with them.

    Parameters
    ----------
    best, worst
        Values of the highest and the lowest priority. By default nobody is put above what
        processes have that are not steered.
    """

    name = "nice"
    needs: ClassVar = frozenset({"nice"})
    sets_helpers = True

    def __init__(self, best: int = 0, worst: int = WORST) -> None:
        check_range("best", best, BEST, WORST)
        check_range("worst", worst, best, WORST)
        self.best = best
        self.worst = worst

    def _plan(self, ranked: Sequence[Ranked], scale: Scale) -> list[Setting]:
        priorities = {each.name: each.priority for each in ranked}
        if scale == "ratio":
            wanted = nice_by_ratio(priorities, self.worst, self.best)
        else:
            wanted = normalise(priorities, scale, self.worst, self.best)
        return [
            NiceValue(thread, round(wanted[each.name]))
            for each in ranked
            for thread in each.operator.threads
        ]
