"""Shedding for any source: a filter inside Spark whose rates change while the query runs.

The rates are a Java system property, read as ``row_filter`` reads a sampling plan: by the
optimizer, on the driver, once for each micro-batch.
"""

import json
import uuid
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater.quality.rates import EVERYTHING, KeepRates

PREFIX = "slackwater.keep."
SPARING = f"{PREFIX}sparing-"  # of filters that drop some rows last
_BITS = 53  # of a hash that make a number between 0 and 1
_SALT = 0x5EED


def sheddable(df: DataFrame, *, by: Sequence[str] = (), spare: str | None = None) -> DataFrame:
    """The rows of any streaming source, some of which may be dropped when there is too much.

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
    set_property(df.sparkSession, name, EVERYTHING)
    text = f"reflect('java.lang.System', 'getProperty', '{name}')"
    rates = f"(SELECT from_json({text}, 'array<double>') FROM VALUES (1) AS t(x))"
    luck = F.xxhash64(F.lit(_SALT), *(by or df.columns))
    luck = F.shiftrightunsigned(luck, 64 - _BITS) / 2.0**_BITS
    rate = F.expr(f"{rates}[1]")
    if spare is not None:
        rate = F.when(F.coalesce(F.expr(spare), F.lit(False)), F.expr(f"{rates}[0]")).otherwise(
            rate
        )
    counted = df.observe(f"{name}.seen", F.count(F.lit(1)).alias("rows"))
    kept = counted.where(luck < rate)
    return kept.observe(name, F.count(F.lit(1)).alias("rows"))


def set_property(spark: SparkSession, name: str, rates: KeepRates) -> None:
    """From the next micro-batch on these rates hold."""
    jvm = spark._jvm
    assert jvm is not None
    jvm.java.lang.System.setProperty(name, json.dumps(rates.numbers))
