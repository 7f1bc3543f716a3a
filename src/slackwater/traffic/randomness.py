"""Random numbers that are a function of their place in the stream.

A counter-based generator (Philox) is keyed with the seed and the partition, and its counter
starts at the block and the purpose. Any block can so be drawn again, in any process, without
drawing what comes before it: that is what makes a replay exact and cheap.
"""

import zlib
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

BLOCK = 4096  # events drawn together: one generator costs about as much as a thousand numbers

T = TypeVar("T", bound=np.generic)

_WORD = 2**64


def block_generator(seed: int, partition: int, block: int, purpose: str) -> np.random.Generator:
    """Make the generator of one block of one partition, for one purpose.

    >>> a, b = (block_generator(7, 0, 3, "delays").integers(1000) for _ in range(2))
    >>> bool(a == b)
    True
    >>> bool(a == block_generator(7, 0, 3, "payload").integers(1000))
    False
    """
    key = seed % _WORD + partition * _WORD
    # The two low words count the draws inside the block, so blocks never overlap.
    counter = (block + zlib.crc32(purpose.encode()) * _WORD) * _WORD * _WORD
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def gather(index: NDArray[np.int64], draw: Callable[[int], NDArray[T]]) -> NDArray[T]:
    """Gather values of events by their index, where ``draw`` gives those of a whole block.

    The last axis of what ``draw`` returns runs over the block.

    >>> gather(np.array([4097, 1]), lambda block: np.arange(BLOCK) + 10_000 * block).tolist()
    [10001, 1]
    """
    if len(index) == 0:
        return draw(0)[..., :0]
    first, last = int(index.min()) // BLOCK, int(index.max()) // BLOCK
    blocks = [draw(block) for block in range(first, last + 1)]
    return np.concatenate(blocks, axis=-1)[..., index - first * BLOCK]
