"""Tells whether a checkpoint belongs to a query, before Spark fails over it in the middle."""

import json
from pathlib import Path

from pyspark.sql import DataFrame

from slackwater.core.errors import UsageError
from slackwater.engines.spark.discovery import discover
from slackwater.engines.spark.offset_log import OffsetEntry, UnsupportedEntry

MARK = "slackwater.json"  # beside Spark's own files, which it leaves alone


def claim(checkpoint: Path, name: str, frame: DataFrame) -> None:
    """Refuse a checkpoint of another query; mark a new one as ``name``'s."""
    mark = checkpoint / MARK
    if mark.is_file():
        owner = json.loads(mark.read_text()).get("query")
        if owner != name:
            raise UsageError(
                f"{name}: checkpoint {checkpoint} belongs to query {owner!r}; "
                "give this query a folder of its own"
            )
    _check_inputs(checkpoint, name, frame)
    checkpoint.mkdir(parents=True, exist_ok=True)
    mark.write_text(json.dumps({"query": name}))


def _check_inputs(checkpoint: Path, name: str, frame: DataFrame) -> None:
    entry = _newest_entry(checkpoint / "offsets")
    if entry is None:
        return
    inputs = discover(frame).inputs
    gated = any(stream.name == "slackwater-gate" for stream in inputs)
    if entry.gated and not gated:
        raise UsageError(
            f"{name}: checkpoint {checkpoint} was written with the source gate; "
            f"convert a copy: slackwater release {checkpoint} NEW"
        )
    if gated and not entry.gated:
        raise UsageError(
            f"{name}: checkpoint {checkpoint} was written without the source gate; "
            f"convert a copy: slackwater adopt {checkpoint} NEW"
        )
    if len(entry.offsets) != len(inputs):
        raise UsageError(
            f"{name}: checkpoint {checkpoint} has {len(entry.offsets)} sources and the query has "
            f"{len(inputs)}: it belongs to another query; give this one a folder of its own"
        )


def _newest_entry(log: Path) -> OffsetEntry | None:
    numbers = (
        [int(path.name) for path in log.iterdir() if path.name.isdecimal()] if log.is_dir() else []
    )
    if not numbers:
        return None
    try:
        return OffsetEntry.parse((log / str(max(numbers))).read_text())
    except (OSError, UnsupportedEntry):
        return None  # Spark will say what is wrong with it
