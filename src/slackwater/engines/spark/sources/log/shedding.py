"""What becomes of the rows of a log that may be shed."""

import zlib

import pyarrow as pa

from slackwater.engines.spark.sources.log.log import Rows
from slackwater.engines.spark.sources.shed_rows import (
    Shedding,
    kept_by_content,
    kept_by_number,
    row_luck,
)
from slackwater.quality.rates import KeepRates


def kept_batch(rows: Rows, keep: KeepRates, shedding: Shedding, name: str) -> pa.RecordBatch:
    """The rows that are kept; what is dropped unseen is not even parsed."""
    part = zlib.crc32(name.encode())
    if not keep.sheds:
        return rows.batch(None)
    if not shedding.looks_at_rows:
        return rows.batch(kept_by_number(keep, 0, part, rows.numbers))
    batch = rows.batch(None)
    kept = kept_by_content(keep, shedding, batch, row_luck(0, part, rows.numbers))
    return batch.take(pa.array(kept))
