"""Tells whether a checkpoint belongs to a query, before Spark fails over it in the middle."""

import json
from pathlib import Path

from pyspark.sql import DataFrame

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.offset_log import OffsetEntry, UnsupportedEntry
from slackwater.engines.spark.plans.discovery import discover

MARK = "slackwater.json"  # beside Spark's own files, which it leaves alone


def claim(
    checkpoint: Path, name: str, frame: DataFrame | None = None, *, gated: bool = False
) -> None:
    """Refuse a checkpoint of another query; mark a new one as ``name``'s.

    ``frame`` is what the query reads, where that is known; ``gated``: it gets a source gate.
    """
    mark = checkpoint / MARK
    if mark.is_file():
        owner = json.loads(mark.read_text()).get("query")
        if owner != name:
            raise UsageError(
                f"{name}: checkpoint {checkpoint} belongs to query {owner!r}; "
                "give this query a folder of its own"
            )
    if frame is not None:
        _check_inputs(checkpoint, name, frame, gated)
    checkpoint.mkdir(parents=True, exist_ok=True)
    mark.write_text(json.dumps({"query": name}))


def _check_inputs(checkpoint: Path, name: str, frame: DataFrame, gated: bool) -> None:
    entry = _newest_entry(checkpoint / "offsets")
    if entry is None:
        return
    if entry.gated and not gated:
        raise UsageError(
            f"{name}: checkpoint {checkpoint} was written with the source gate; "
            f"convert a copy: slackwater release {checkpoint}"
        )
    if gated and not entry.gated:
        raise UsageError(
            f"{name}: checkpoint {checkpoint} was written without the source gate; "
            f"convert a copy: slackwater adopt {checkpoint}"
        )
    before, now = len(entry.offsets) - gated, len(discover(frame).inputs)
    if before != now:
        raise UsageError(
            f"{name}: checkpoint {checkpoint} has {before} sources and the query has {now}: "
            "it belongs to another query; give this one a folder of its own"
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
