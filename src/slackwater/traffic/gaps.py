"""How regularly events follow each other: the rate says how many, the gaps how evenly.

Event ``n`` happens when the rate's count reaches the *place* of ``n``: the sum of the gaps before
it, which are 1 on average. Even gaps put it at ``n`` itself.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slackwater.core.errors import UsageError
from slackwater.traffic.randomness import BLOCK, block_generator, gather

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VALID_FORMS = "constant, exponential, gamma:SHAPE (gamma:2, say)"


class Gaps(ABC):
    """Distances between events, in units of their mean."""

    @abstractmethod
    def places(self, seed: int, number: Ints) -> Floats:
        """Return where events lie on the axis of the count."""

    @abstractmethod
    def number_at(self, seed: int, place: float) -> int:
        """Return how many events lie before a place; give or take one."""


@dataclass(frozen=True)
class EvenGaps(Gaps):
    """Gaps that are all alike.

    >>> EvenGaps().places(1, np.array([0, 5])).tolist()
    [0.0, 5.0]
    """

    def places(self, seed: int, number: Ints) -> Floats:
        return number.astype(np.float64)

    def number_at(self, seed: int, place: float) -> int:
        return int(place)


@dataclass(frozen=True)
class GammaGaps(Gaps):
    """Independent gaps with a gamma distribution of mean 1; shape 1 is a Poisson process.

    Any place can be asked for at once: the sums over whole blocks are drawn first, many together,
    and the gaps of a block are scaled to its sum, which leaves their law as it is.

    >>> gaps = GammaGaps(2.0)
    >>> places = gaps.places(1, np.arange(100_000))
    >>> bool(np.all(np.diff(places) > 0)), round(float(np.diff(places).var()), 1)
    (True, 0.5)
    >>> abs(gaps.number_at(1, float(places[77_777])) - 77_777) <= 1
    True
    """

    shape: float

    def places(self, seed: int, number: Ints) -> Floats:
        blocks = number // BLOCK
        starts = self._starts(seed, int(blocks.max(initial=0)) + 1)
        return starts[blocks] + gather(number, lambda block: self._inside(seed, block, starts))

    def number_at(self, seed: int, place: float) -> int:
        if place <= 0:
            return 0
        starts = self._starts(seed, math.ceil(place / BLOCK) + 1)
        while starts[-1] <= place:
            starts = self._starts(seed, len(starts) + BLOCK)
        block = int(np.searchsorted(starts, place, side="right")) - 1
        inside = self._inside(seed, block, starts)
        return block * BLOCK + int(np.searchsorted(inside, place - starts[block], side="right"))

    def _starts(self, seed: int, blocks: int) -> Floats:
        """Return places of the first events of blocks, at least up to that of block ``blocks``."""
        return _starts(self.shape, seed, blocks // BLOCK + 1)

    def _inside(self, seed: int, block: int, starts: Floats) -> Floats:
        """Return places in a block, from its start."""
        return _inside(self.shape, seed, block) * float(starts[block + 1] - starts[block])


@lru_cache(maxsize=64)
def _starts(shape: float, seed: int, groups: int) -> Floats:
    """Return the starts of ``groups`` times ``BLOCK`` blocks, and the end of the last."""
    drawn = [
        block_generator(seed, 0, group, "gap-sums").gamma(shape * BLOCK, 1 / shape, BLOCK)
        for group in range(groups)
    ]
    return np.concatenate([[0.0], np.cumsum(np.concatenate(drawn))])


@lru_cache(maxsize=256)
def _inside(shape: float, seed: int, block: int) -> Floats:
    """Return places in a block, as parts of its length; the first event is at its start."""
    gaps = block_generator(seed, 0, block, "gaps").standard_gamma(shape, BLOCK)
    ends = np.cumsum(gaps)
    return np.asarray(np.concatenate([[0.0], ends[:-1]]) / ends[-1])


def parse_gaps(text: str) -> Gaps:
    """Read the gaps that a short text names.

    >>> parse_gaps("gamma:2")
    GammaGaps(shape=2.0)
    >>> parse_gaps("random")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: 'random' names no gaps; valid forms: constant, \
exponential, gamma:SHAPE (gamma:2, say)
    """
    kind, _, argument = text.strip().partition(":")
    try:
        if kind == "constant" and not argument:
            return EvenGaps()
        if kind == "exponential" and not argument:
            return GammaGaps(1.0)
        if kind == "gamma" and 0 < float(argument) < math.inf:
            return GammaGaps(float(argument))
    except ValueError:
        pass
    raise UsageError(f"'{text}' names no gaps; valid forms: {VALID_FORMS}")
