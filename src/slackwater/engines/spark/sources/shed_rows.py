"""Rows of our sources that are shed: before they reach the JVM, the same ones at every replay.

How much is kept is said by the source's directives. What follows from them goes into the offset, so
that a replay keeps the same rows.
"""

import operator
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from slackwater.core.errors import UsageError
from slackwater.quality.rates import KeepRates
from slackwater.sampling.ledger import chances

Floats = NDArray[np.float64]

_SALT = 0x5EED  # so that a row's luck here is not its luck when it is sampled

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": pc.greater_equal,
    "<=": pc.less_equal,
    "!=": pc.not_equal,
    "=": pc.equal,
    ">": pc.greater,
    "<": pc.less,
}
_PREDICATE = re.compile(r"\s*(\w+)\s*(>=|<=|!=|=|>|<)\s*(.+?)\s*$")


@dataclass(frozen=True)
class Shedding:
    """Which rows go together, and which are spared."""

    by: tuple[str, ...] = ()  # rows with the same values here are kept or dropped together
    spare: str | None = None  # column, comparison, value: such rows are dropped last

    def __post_init__(self) -> None:
        if self.spare is not None:
            parse_predicate(self.spare)

    @property
    def looks_at_rows(self) -> bool:
        """Whether it must see a row's columns to decide."""
        return bool(self.by) or self.spare is not None

    def check(self, columns: list[str]) -> None:
        """Refuse what names a column that is not there."""
        wanted = [*self.by, *([parse_predicate(self.spare)[0]] if self.spare else [])]
        missing = [name for name in wanted if name not in columns]
        if missing:
            raise UsageError(f"shedding looks at {missing[0]!r}; there is {', '.join(columns)}")


def parse_predicate(text: str) -> tuple[str, str, str | float]:
    """Return column, comparison and value.

    >>> parse_predicate("amount >= 100"), parse_predicate("kind = 'gold'")
    (('amount', '>=', 100.0), ('kind', '=', 'gold'))
    """
    found = _PREDICATE.match(text)
    if found is None:
        raise UsageError(f"{text!r} spares nothing: write column, comparison, value: amount >= 100")
    column, comparison, value = found.groups()
    if value[0] == value[-1] == "'" and len(value) > 1:
        return column, comparison, value[1:-1]
    try:
        return column, comparison, float(value)
    except ValueError:
        raise UsageError(f"{value!r} is no number; write a text as '{value}'") from None


def kept_rows(
    make: Callable[[NDArray[np.intp] | None], pa.RecordBatch],
    rates: KeepRates,
    shedding: Shedding,
    seed: int,
    part: int,
    numbers: NDArray[np.int64],
) -> pa.RecordBatch:
    """Make the rows of a stream that are kept.

    Parameters
    ----------
    make
        Makes some rows by their places; None: all of them.
    seed, part, numbers
        A row's luck is drawn from these, unless columns say which rows go together.
    """
    if not rates.sheds:
        return make(None)
    luck = chances(seed ^ _SALT, part, numbers)
    if not shedding.looks_at_rows:
        return make(np.flatnonzero(luck < rates.others))
    rows = make(None)
    return rows.take(pa.array(_kept_by_content(rates, shedding, rows, luck)))


def _kept_by_content(
    rates: KeepRates, shedding: Shedding, rows: pa.RecordBatch, luck: Floats
) -> NDArray[np.intp]:
    if shedding.by:
        luck = luck_by_key([rows.column(name) for name in shedding.by])
    rate = np.full(rows.num_rows, rates.others)
    if shedding.spare is not None:
        column, comparison, value = parse_predicate(shedding.spare)
        spared = _COMPARISONS[comparison](rows.column(column), pa.scalar(value))
        rate[pc.fill_null(spared, False).to_numpy(zero_copy_only=False)] = rates.spared
    return np.flatnonzero(luck < rate)


def luck_by_key(columns: list[pa.Array]) -> Floats:
    """Return numbers from 0 to 1 that depend on the keys alone, whichever source has them.

    >>> luck = luck_by_key([pa.array(["a", "b", "a"])])
    >>> luck[0] == luck[2], luck[0] == luck[1]
    (np.True_, np.False_)
    """
    mixed = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        texts = np.array([_number(repr(each)) for each in encoded.dictionary.to_pylist()])
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        mixed = operator.xor(mixed * 31, texts[codes] if len(texts) else mixed)
    return chances(_SALT, 0, mixed)


@lru_cache(maxsize=100_000)
def _number(text: str) -> int:
    raw = text.encode()
    return zlib.crc32(raw) << 20 ^ zlib.adler32(raw)
