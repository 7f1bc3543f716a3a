"""What Spark would get of a source, without Spark."""

import pickle
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from slackwater.engines.spark.sources.base import Offset, SourceReader
from slackwater.engines.spark.sources.sampled_rows import SAMPLE


def read(reader: SourceReader, start: Offset, end: Offset) -> list[dict[str, Any]]:
    """Return what Spark would get, with every object sent through a pickle as Spark does."""
    reader = pickle.loads(pickle.dumps(reader))
    batches = [
        batch
        for partition in reader.partitions(start, end)
        for batch in reader.read(pickle.loads(pickle.dumps(partition)))
    ]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def with_sample(schema: StructType) -> StructType:
    """Add the column of sampled sources, without a Spark that could parse DDL."""
    number = {"type": "array", "elementType": "double", "containsNull": True}
    kinds = {"rate": "double", "delay": "double", "weights": number, "doubts": number}
    kinds["usual"] = number
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in kinds.items()
    ]
    sample = StructType.fromJson({"type": "struct", "fields": fields})
    return StructType(list(schema.fields)).add(SAMPLE, sample)
