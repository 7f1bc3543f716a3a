"""Random order."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from slackwater.core.entities import Operator, Values
from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies.base import Policy


class RandomOrder(Policy):
    """Admits whoever is drawn; the same seed draws the same."""

    name = "random-order"
    metrics: ClassVar = ()

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._chance = random.Random(seed)

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        order = sorted(waiting, key=lambda q: q.name)
        self._chance.shuffle(order)
        for query in order:
            yield Admission(query.name, f"drawn from {len(order)} at the gate")

    def _weigh(
        self, operators: Sequence[Operator], metrics: Mapping[str, Values], now_s: float
    ) -> Values:
        return {operator.name: self._chance.random() for operator in operators}
