"""Tells whether a checkpoint belongs to a query, before Spark fails over it in the middle."""

import json

from pyspark.sql import DataFrame

from slackwater.core.errors import UsageError
from slackwater.engines.spark.checkpoints.files import Folder, numbers
from slackwater.engines.spark.checkpoints.offset_log import OffsetEntry, UnsupportedEntry
from slackwater.engines.spark.plans.discovery import discover

MARK = "slackwater.json"  # beside Spark's own files, which it leaves alone


def claim(
    checkpoint: Folder, name: str, frame: DataFrame | None = None, *, gated: bool = False
) -> None:
    """Refuse a checkpoint of another query; mark a new one as ``name``'s.

    ``frame`` is what the query reads, where that is known; ``gated``: it gets a source gate.
    """
    mark = checkpoint.read(MARK)
    if mark is not None:
        owner = json.loads(mark).get("query")
        if owner != name:
            raise UsageError(
                f"{name}: checkpoint {checkpoint} belongs to query {owner!r}; "
                "give this query a folder of its own"
            )
    if frame is not None:
        _check_inputs(checkpoint, name, frame, gated)
    if mark is None:
        checkpoint.write(MARK, json.dumps({"query": name}))


def refuse_lost_checkpoint(name: str, results: Folder, checkpoint: Folder) -> None:
    """Refuse results of a query whose checkpoint is gone.

    Spark's file sink remembers the numbers of the batches that it has; a query that begins anew
    counts from zero, and its first batches would be taken for those and left out without a word.
    """
    written = any(each[0].isdecimal() for each in results.changed_s("_spark_metadata"))
    if written and not numbers(checkpoint.changed_s("offsets")):
        raise UsageError(
            f"{name}: {results} has results of a query whose checkpoint is gone; Spark would leave "
            "out as many batches: remove that folder too, or write to another"
        )


def _check_inputs(checkpoint: Folder, name: str, frame: DataFrame, gated: bool) -> None:
    entry = _newest_entry(checkpoint)
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


def _newest_entry(checkpoint: Folder) -> OffsetEntry | None:
    batches = numbers(checkpoint.changed_s("offsets"))
    if not batches:
        return None
    try:
        return OffsetEntry.parse(checkpoint.read(f"offsets/{batches[-1]}") or "")
    except (OSError, UnsupportedEntry):
        return None  # Spark will say what is wrong with it
