"""VoipStream: who of all callers behaves like a telemarketer?"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

WINDOW = 20_000  # calls
CALLERS = 401
MARKETERS = 20  # of them; they call many others, shortly
CALLEES = 4_999
LOUD = 0.5  # score from which a caller is reported


@dataclass(frozen=True)
class Calls:
    """Call records, as columns."""

    caller: NDArray[np.int64]
    callee: NDArray[np.int64]
    seconds: NDArray[np.int64]
    answered: NDArray[np.bool_]

    @classmethod
    def of(cls, number: NDArray[np.int64], seed: int) -> "Calls":
        """Return the calls with these numbers."""
        caller = (number * 7919 + seed * 101) % CALLERS
        marketer = caller < MARKETERS
        spread = (number * 3571 + seed) % CALLEES
        callee = np.where(marketer, spread, CALLEES + caller * 10 + number % 7)
        seconds = np.where(marketer, 5 + number % 20, 60 + number % 600)
        return cls(caller, callee, seconds, number % 10 != 3)


@dataclass(frozen=True, kw_only=True)
class VoipStream:
    """One query: rates of answered calls, of new callees, and talking time, combined to a score.

    DSPBench counts with Bloom filters that forget; here distinct callees are counted exactly, so
    that there is a truth.

    References
    ----------
    Bordin et al., *DSPBench*, IEEE Access 8, 2020.
    """

    number: int = 0
    seed: int = 1

    @property
    def name(self) -> str:
        return f"voip-{self.number}"

    def pipeline(self, rows: DataFrame) -> DataFrame:
        """Return it on Spark, on rows with ``id``: window, caller, score of those reported."""
        number = F.col("id")
        caller = (number * 7919 + self.seed * 101) % CALLERS
        marketer = F.col("caller") < MARKETERS
        spread = (number * 3571 + self.seed) % CALLEES
        calls = (
            rows.withColumn("caller", caller)
            .withColumn(
                "callee",
                F.when(marketer, spread).otherwise(CALLEES + F.col("caller") * 10 + number % 7),
            )
            .withColumn("seconds", F.when(marketer, 5 + number % 20).otherwise(60 + number % 600))
            .withColumn("answered", (number % 10 != 3).cast("int"))
            .withColumn("w", F.floor(number / WINDOW).cast("bigint"))
        )
        figures = calls.groupBy("w", "caller").agg(
            F.avg("answered").alias("answered"),
            (F.size(F.collect_set("callee")) / F.count("*")).alias("fresh"),
            F.avg("seconds").alias("talk"),
        )
        score = F.col("fresh") * F.col("answered") * (1 - F.least(F.col("talk") / 120, F.lit(1.0)))
        return figures.select("w", "caller", score.alias("score")).where(f"score >= {LOUD}")

    def truth(self, numbers: NDArray[np.int64]) -> list[tuple[int, int, float]]:
        """Return those reported: window, caller, score to four places.

        >>> found = VoipStream().truth(np.arange(20_000))
        >>> {caller for _, caller, _ in found} <= set(range(MARKETERS)) and len(found) > 10
        True
        """
        calls = Calls.of(numbers, self.seed)
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, (n, caller) in enumerate(
            zip(numbers.tolist(), calls.caller.tolist(), strict=True)
        ):
            groups[n // WINDOW, caller].append(place)
        found = []
        for (window, caller), places in groups.items():
            answered = float(calls.answered[places].mean())
            fresh = len(set(calls.callee[places].tolist())) / len(places)
            talk = float(calls.seconds[places].mean())
            score = fresh * answered * (1 - min(talk / 120, 1.0))
            if score >= LOUD:
                found.append((window, caller, round(score, 4)))
        return sorted(found)
