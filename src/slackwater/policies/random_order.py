"""Random order."""

import random
from collections.abc import Iterable, Sequence

from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies.base import Policy


class RandomOrder(Policy):
    """Admits whoever is drawn; the same seed draws the same."""

    name = "random-order"

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._chance = random.Random(seed)

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        order = sorted(waiting, key=lambda q: q.name)
        self._chance.shuffle(order)
        for query in order:
            yield Admission(query.name, f"drawn from {len(order)} at the gate")
