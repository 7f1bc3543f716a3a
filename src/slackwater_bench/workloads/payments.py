"""Payments, most of them small and a few of them huge: sums that a few rows rule."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.engines.spark.sources.sampled_rows import SAMPLE
from slackwater.traffic import BLOCK, block_generator, gather
from slackwater_bench.workloads.base import ApproximateWorkload, Rows, TrueValues

Ints = NDArray[np.int64]


class PaymentAmounts:
    """Payload generator: whole cents, Pareto from one unit of money on.

    >>> cents = PaymentAmounts(seed=1, shape=1.5).cents(0, np.arange(10_000))
    >>> bool(cents.min() >= 100), bool(cents.max() > 100 * np.median(cents))
    (True, True)
    """

    schema = "cents bigint"
    event_time = "event_time"

    def __init__(self, *, seed: int, shape: float) -> None:
        self.seed = seed
        self._shape = shape

    def cents(self, partition: int, index: Ints) -> Ints:
        """Return the amounts of some payments."""

        def draw(block: int) -> NDArray[np.float64]:
            rng = block_generator(self.seed, partition, block, "payments")
            return rng.random((1, BLOCK))

        (uniform,) = gather(index, draw)
        cents: Ints = np.rint(100 * (1 - uniform) ** (-1 / self._shape)).astype(np.int64)
        return cents

    def columns(self, partition: int, index: Ints) -> dict[str, pa.Array]:
        """Return the columns of ``schema``."""
        return {"cents": pa.array(self.cents(partition, index))}


@dataclass(frozen=True, kw_only=True)
class Payments(ApproximateWorkload):
    """The sum and the number of payments in each window.

    Parameters
    ----------
    shape
        Of the Pareto distribution: below 2 it has no variance, below 1 no mean.

    Examples
    --------
    >>> from slackwater.traffic import Traffic
    >>> work = Payments(traffic=Traffic(start_s=0, rate="100"))
    >>> ((total, number),) = work.truth(0, 3_000_000)[3_000_000]
    >>> number, total > 30_000
    (300, True)
    """

    name: ClassVar[str] = "payments"
    columns: ClassVar[tuple[str, ...]] = ("total", "number")
    aggregates: ClassVar[dict[str, str]] = {"total": "sum(cents)", "number": "count()"}

    window_s: float = 3.0
    shape: float = 1.5

    @property
    def _generator(self) -> type[PaymentAmounts]:
        return PaymentAmounts

    @property
    def _arguments(self) -> dict[str, float]:
        return {"shape": self.shape}

    def _results(self, events: DataFrame) -> DataFrame:
        window = self.windows.column("event_time").alias("window")
        return events.groupBy(window).agg(
            F.sum("cents").alias("total"), F.count("*").alias("number")
        )

    def _truth_of(self, end_us: int) -> Rows:
        cents = self._cents(end_us)
        return Counter([(int(cents.sum()), len(cents))])

    def sampled_rows(self, events: DataFrame) -> DataFrame:
        return events.select("cents", "event_time", SAMPLE)

    def true_values(self, end_us: int) -> TrueValues:
        cents = self._cents(end_us)
        values: dict[str, Any] = {"total": float(cents.sum()), "number": len(cents)}
        return {(): values}

    def _cents(self, end_us: int) -> Ints:
        parts = [self.events.cents(*numbers) for numbers in self._numbers(end_us)]
        return np.concatenate(parts)
