"""What Spark would get of a source, without Spark."""

import pickle
from typing import Any

import pyarrow as pa

from slackwater.engines.spark.sources.feed import FeedReader


def read(reader: FeedReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """What Spark would get, with every object sent through a pickle as Spark does."""
    reader = pickle.loads(pickle.dumps(reader))
    batches = [
        batch
        for partition in reader.partitions(start, end)
        for batch in reader.read(pickle.loads(pickle.dumps(partition)))
    ]
    return pa.Table.from_batches(batches).to_pylist() if batches else []
