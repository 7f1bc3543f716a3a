"""A definition that also counts what waits: it lets a backlog go within a stated time."""

from typing import ClassVar

import numpy as np

from slackwater.core.errors import UsageError
from slackwater.quality.accuracies.base import Accuracy, offered, part
from slackwater.quality.graph import Floats
from slackwater.quality.load import Layout, Load


class Lag(Accuracy):
    """Rows processed of rows that come and those that wait, the latter spread over ``drain_s``.

    The published definition only keeps up: rows that waited when a rate rose go on waiting.

    Parameters
    ----------
    drain_s
        How long a backlog may take to go.
    """

    name: ClassVar[str] = "lag"

    def __init__(self, drain_s: float = 2.0) -> None:
        if not drain_s > 0:
            raise UsageError(f"drain_s must be positive, not {drain_s:g}")
        self.drain_s = drain_s

    def _local(self, layout: Layout, load: Load) -> Floats:
        rates = offered(layout, load)
        if load.backlog is not None:
            rates = rates + load.backlog / self.drain_s
        return part(load.in_rate[load.slowest(layout)], rates / np.maximum(layout.instances, 1))
