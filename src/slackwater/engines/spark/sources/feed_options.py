"""Options of a feed, and what its events carry: generators of columns, named ``module:Class``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.common.plugins import load_object
from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.base import SourceOptions
from slackwater.engines.spark.sources.options import parse_texts, write_texts
from slackwater.engines.spark.sources.sampled_rows import SAMPLE, SAMPLE_TYPE
from slackwater.traffic import Traffic, parse_rate

# Options of the traffic, by the names of its fields.
_TRAFFIC = {"start_s": "start", "stop_s": "stop"}
_TRAFFIC |= {name: name for name in ("rate", "delays", "partitions", "seed", "gaps")}


@dataclass(frozen=True, kw_only=True)
class FeedOptions(SourceOptions):
    """Everything that a feed's processes need to know; equal options give equal rows."""

    traffic: Traffic
    generator: str  # module:Class
    arguments: str = "{}"  # of the generator, a JSON object
    arrival: bool = False  # whether rows carry ``arrival_time``

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> "FeedOptions":
        for name in ("generator", "start"):
            if name not in texts:
                raise UsageError(f"a feed needs the option '{name}'")
        traffic = {name: texts[option] for name, option in _TRAFFIC.items() if option in texts}
        others = {name: text for name, text in texts.items() if name not in _TRAFFIC.values()}
        return cls(traffic=Traffic(**parse_texts(Traffic, traffic)), **parse_texts(cls, others))

    def texts(self) -> dict[str, str]:
        """Write options as Spark takes them; a trace is written out: workers may lack its file."""
        rate = parse_rate(self.traffic.rate).text()
        traffic = write_texts(replace(self.traffic, rate=rate))
        return {_TRAFFIC[name]: text for name, text in traffic.items()} | super().texts()

    def payload(self) -> "PayloadGenerator":
        """Return the generator of the rows."""
        return load_generator(self.generator, self.arguments, self.traffic.seed)

    def schema(self) -> str:
        """Return the columns of the feed as Spark DDL."""
        payload = self.payload()
        columns = [payload.schema, f"{payload.event_time} timestamp"]
        if self.arrival:
            columns.append("arrival_time timestamp")
        if self.sampled:
            columns.append(f"{SAMPLE} {SAMPLE_TYPE}")
        return ", ".join(columns)


class PayloadGenerator(Protocol):
    """Makes the columns of events.

    It is built as ``Class(seed=seed, **arguments)`` in every process that reads. A value must be
    a function of the seed, the partition and the event's index alone, else a replay differs.
    """

    schema: str  # columns as Spark DDL, without the event time
    event_time: str  # name of the event-time column, which the feed adds

    def columns(self, partition: int, index: NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the columns of ``schema`` for some events of one partition."""


@lru_cache(maxsize=32)  # a worker serves many batches; pools of strings are costly to build
def load_generator(name: str, arguments: str, seed: int) -> PayloadGenerator:
    """Return the generator called ``module:Class``, built with a JSON object of arguments.

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
