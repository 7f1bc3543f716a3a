"""What all definitions of accuracy share: between 0 and 1, and no better than what they live on."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from slackwater.quality.graph import Floats
from slackwater.quality.load import Layout, Load


class Accuracy(ABC):
    """How much of an application's input each task takes into account.

    A member writes :meth:`_local`: which part a task processes of what it is given.
    """

    name: ClassVar[str] = ""  # as users write it

    def current(self, layout: Layout, load: Load) -> Floats:
        """Return by task (equation 3) its own part of the least that its producers have."""
        graph = layout.graph
        found = np.clip(self._local(layout, load), 0.0, 1.0)
        producers, consumers = graph.edges[:, 0], graph.edges[:, 1]
        for layer in graph.layers:
            given = np.full(len(found), np.inf)
            np.minimum.at(given, consumers[layer], found[producers[layer]])
            found = found * np.where(np.isfinite(given), given, 1.0)
        return found

    @abstractmethod
    def _local(self, layout: Layout, load: Load) -> Floats:
        """Return a value by task; the caller clips it to between 0 and 1."""


def offered(layout: Layout, load: Load) -> Floats:
    """Return rows per second that there are for each task, before any are shed."""
    rates = load.source_rate.copy()
    np.add.at(rates, layout.graph.edges[:, 1], load.out_rate)
    return rates


def part(rates: Floats, of: Floats) -> Floats:
    """Divide; all of nothing is everything.

    >>> part(np.array([1.0, 0.0]), np.array([2.0, 0.0])).tolist()
    [0.5, 1.0]
    """
    return np.divide(rates, of, out=np.ones_like(rates), where=of > 0)
