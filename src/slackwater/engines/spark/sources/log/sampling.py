"""What becomes of the rows of a log that are sampled."""

import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.engines.spark.sources.log.log import Ints, Rows
from slackwater.engines.spark.sources.log.spans import Segment
from slackwater.engines.spark.sources.sampled_rows import SAMPLE, sample_column, weigh
from slackwater.sampling.ledger import Ledger, chances


def sampled_batch(
    rows: Rows,
    event_time: str,
    segment: Segment,
    ledger: Ledger | None,
    name: str,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """The rows of a segment that belong to the micro-batch and are kept, with their sample.

    Rows without an event time are left out: they belong to no window.
    """
    times = rows.column(event_time)
    event_us = event_times(times)
    mine = np.flatnonzero(segment.takes(event_us) & times.is_valid().to_numpy(False))
    event_us = event_us[mine]
    arrival_us = segment.arrivals(rows.arrival_us, len(rows.numbers))[mine]
    drawn = chances(0, zlib.crc32(name.encode()), rows.numbers[mine])
    kept, weighed = weigh(ledger, event_us, arrival_us, drawn)
    delays_us = np.maximum(arrival_us[kept] - event_us[kept], 0)
    sample = sample_column(weighed, kept, delays_us).cast(schema.field(SAMPLE).type)
    batch = rows.batch(mine[kept])
    columns = [sample if field == SAMPLE else batch.column(field) for field in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def event_times(column: pa.Array) -> Ints:
    """Microseconds since the epoch of a column of timestamps; 0 where there is none."""
    times: Ints = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return times
