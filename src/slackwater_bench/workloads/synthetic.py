"""Synthetic pipelines: operators of random cost and selectivity, one after the other."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError

WIDTH = 64  # characters of a row
BLOCKING_SHARE = 0.1  # of all operators
BLOCKING_CHANCE = 0.001  # for a row to block
BLOCKING_MS = 200  # at most
# Which rows pass depends on their number modulo a prime, another one in each operator: so the same
# rows pass in every engine, and operators are independent of each other.
_PRIMES = (1009, 1013, 1019, 1021, 1031, 1033)


@dataclass(frozen=True, slots=True)
class Stage:
    """One operator."""

    work: int  # how often the row's text is repeated before it is hashed
    modulus: int
    keep: int  # of ``modulus`` rows
    offset: int  # which rows these are
    blocks: bool = False  # some rows wait as if for a disk

    @property
    def selectivity(self) -> float:
        return self.keep / self.modulus


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """One of many queries, each different and each the same whenever it is made.

    Cost and selectivity of each operator are uniform; every operator hashes a text, which is all
    that it costs, and passes on rows by their number, so that the result is known.

    Parameters
    ----------
    number
        Which query.
    seed
        Of all of them.
    operators
        In a row.
    work
        Mean cost of an operator: how often a row's text is repeated before it is hashed, about
        0.2 µs each.
    blocking
        A tenth of the operators block now and then, for up to 200 ms.

    References
    ----------
    Palyvos-Giannas et al., *Haren*, DEBS 2019; *Lachesis*, Middleware 2021.
    """

    number: int = 0
    seed: int = 1
    operators: int = 5
    work: int = 400
    blocking: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.operators <= len(_PRIMES):
            raise UsageError(f"a synthetic query has 1 to {len(_PRIMES)} operators")
        if self.work < 1:
            raise UsageError("the work of a synthetic operator must be at least 1")

    @property
    def name(self) -> str:
        return f"synthetic-{self.number}"

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Its operators."""
        chance = np.random.default_rng([self.seed, self.number])
        return tuple(
            Stage(
                work=int(chance.integers(max(1, self.work // 5), 2 * self.work + 1)),
                modulus=_PRIMES[place],
                keep=int(chance.integers(_PRIMES[place] // 2, _PRIMES[place] + 1)),
                offset=int(chance.integers(0, _PRIMES[place])),
                blocks=bool(chance.random() < BLOCKING_SHARE) and self.blocking,
            )
            for place in range(self.operators)
        )

    def passing(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows that come out: the truth.

        >>> query, ids = Synthetic(number=3), np.arange(1_000_000)
        >>> expected = np.prod([stage.selectivity for stage in query.stages])
        >>> bool(abs(len(query.passing(ids)) / len(ids) - expected) < 0.01)
        True
        """
        for stage in self.stages:
            ids = ids[(ids + stage.offset) % stage.modulus < stage.keep]
        return ids


def synthetic_queries(
    count: int, seed: int = 1, work: int = 400, blocking: bool = False
) -> Iterator[Synthetic]:
    """Return the first ``count`` of them."""
    return (
        Synthetic(number=number, seed=seed, work=work, blocking=blocking) for number in range(count)
    )


def pipeline(query: Synthetic, rows: DataFrame) -> DataFrame:
    """Return the query on Spark, on rows with a column ``id``: columns ``id`` and ``p``."""
    found = rows.select("id", F.rpad(F.md5(F.col("id").cast("string")), WIDTH, "-").alias("p"))
    for stage in query.stages:
        kept = (F.col("id") + stage.offset) % stage.modulus < stage.keep
        text = F.sha2(F.repeat(F.col("p"), stage.work), 512)
        if stage.blocks:
            text = F.concat(text, _blocking(query.seed + stage.modulus))
        found = found.where(kept).select("id", F.rpad(text, WIDTH, "-").alias("p"))
    return found


def _blocking(seed: int) -> Column:
    """Return an empty text that now and then takes long, as a call to a far service does."""
    wait = F.call_function(
        "reflect",
        F.lit("java.lang.Thread"),
        F.lit("sleep"),
        (F.rand(seed) * BLOCKING_MS).cast("bigint"),
    )
    return F.when(F.rand(seed + 1) < BLOCKING_CHANCE, F.substring(wait, 1, 0)).otherwise("")
