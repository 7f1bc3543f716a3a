"""What the events of a feed carry: generators of columns, named ``module:Class``."""

import json
from functools import lru_cache
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.common.plugins import load_object
from slackwater.core.errors import UsageError


class PayloadGenerator(Protocol):
    """Makes the columns of events.

    It is built as ``Class(seed=seed, **arguments)`` in every process that reads. A value must be
    a function of the seed, the partition and the event's index alone, else a replay differs.
    """

    schema: str  # columns as Spark DDL, without the event time
    event_time: str  # name of the event-time column, which the feed adds

    def columns(self, partition: int, index: NDArray[np.int64]) -> dict[str, pa.Array]:
        """The columns of ``schema`` for some events of one partition."""


@lru_cache(maxsize=32)  # a worker serves many batches; pools of strings are costly to build
def load_generator(name: str, arguments: str, seed: int) -> PayloadGenerator:
    """The generator called ``module:Class``, built with a JSON object of arguments.

    >>> load_generator("collections:nothing", "{}", 1)
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: collections has no 'nothing'
    """
    build = load_object(name)
    try:
        return cast(PayloadGenerator, build(seed=seed, **_object(arguments)))
    except TypeError as error:
        raise UsageError(f"payload generator '{name}' refuses its arguments: {error}") from None


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"generator arguments must be a JSON object, not {text}")
    return value
