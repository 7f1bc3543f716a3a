"""Shedding for any source: a filter inside Spark whose rates change while the query runs.

See ``plans.live_value`` for how they come into the query.
"""

import uuid
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater.engines.spark.plans.live_value import LiveValue, row_chance
from slackwater.quality.rates import EVERYTHING

PREFIX = "slackwater.keep."
SPARING = f"{PREFIX}sparing-"  # of filters that drop some rows last
_SALT = 0x5EED


def sheddable(df: DataFrame, *, by: Sequence[str] = (), spare: str | None = None) -> DataFrame:
    """Return the rows of any streaming source, some of which may be dropped when there is too much.

    Put it after ``withWatermark``, so that dropped rows still move the watermark. Sources of ours
    do it themselves, before rows reach Spark: give them ``sheddable=True`` instead.

    Parameters
    ----------
    by
        Columns: rows with the same values there are kept or dropped together; by default all
        columns.
    spare
        A condition in SQL: such rows are dropped last.
    """
    if not df.isStreaming:
        raise UsageError("a batch DataFrame is not shed; read it with readStream")
    missing = [column for column in by if column not in df.columns]
    if missing:
        raise UsageError(f"the input has no column {missing[0]!r}; it has: {', '.join(df.columns)}")
    name = (PREFIX if spare is None else SPARING) + uuid.uuid4().hex
    live = LiveValue(df.sparkSession, name)
    live.set(EVERYTHING.numbers)
    rates = live.sql("array<double>")
    luck = row_chance([F.lit(_SALT), *(by or df.columns)])
    rate = F.expr(f"{rates}[1]")
    if spare is not None:
        rate = F.when(F.coalesce(F.expr(spare), F.lit(False)), F.expr(f"{rates}[0]")).otherwise(
            rate
        )
    counted = df.observe(f"{name}.seen", F.count(F.lit(1)).alias("rows"))
    kept = counted.where(luck < rate)
    return kept.observe(name, F.count(F.lit(1)).alias("rows"))
