"""Rows of our sources that are shed: before they reach the JVM, the same ones at every replay.

How much is kept is said by a small file that the quality controller writes and the source reads
before each micro-batch. What follows from it goes into the offset, so that a replay keeps the same
rows. A missing, broken or old file sheds nothing.
"""

import json
import operator
import re
import time
import uuid
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from slackwater.common.files import replace_text
from slackwater.core.errors import UsageError
from slackwater.ipc.unix_socket import runtime_dir
from slackwater.quality.rates import NO_SHEDDING, KeepRates, ShedPlan
from slackwater.sampling.ledger import chances

Floats = NDArray[np.float64]

LASTS_S = 30.0  # without a word from whoever sheds, a source goes back to everything
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
    """Which rows go together, and which are spared.

    >>> Shedding(by=("user",), spare="amount >= 100").texts()
    {'shed_by': 'user', 'spare': 'amount >= 100'}
    """

    by: tuple[str, ...] = ()  # rows with the same values here are kept or dropped together
    spare: str | None = None  # column, comparison, value: such rows are dropped last

    def __post_init__(self) -> None:
        if self.spare is not None:
            parse_predicate(self.spare)

    @property
    def looks_at_rows(self) -> bool:
        """Whether it must see a row's columns to decide."""
        return bool(self.by) or self.spare is not None

    def texts(self) -> dict[str, str]:
        """As options of a source."""
        found = {"shed_by": ",".join(self.by), "spare": self.spare}
        return {name: text for name, text in found.items() if text}

    def check(self, columns: list[str]) -> None:
        """Refuse what names a column that is not there."""
        wanted = [*self.by, *([parse_predicate(self.spare)[0]] if self.spare else [])]
        missing = [name for name in wanted if name not in columns]
        if missing:
            raise UsageError(f"shedding looks at {missing[0]!r}; there is {', '.join(columns)}")


ANY_ROW = Shedding()


def parse_predicate(text: str) -> tuple[str, str, str | float]:
    """Column, comparison and value.

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


def new_shed_path() -> str:
    """Where the rates of a source will be; nobody else's."""
    folder = runtime_dir() / "shedding"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder / f"{uuid.uuid4().hex}.json")


def write_shed_plan(path: Path, plan: ShedPlan, lasts_s: float = LASTS_S) -> None:
    """Holds from the next micro-batch on."""
    replace_text(path, json.dumps({**asdict(plan), "until": time.time() + lasts_s}))


def read_shed_plan(path: str | None) -> ShedPlan:
    """What holds for the next micro-batch; nothing is shed where there is no plan that holds."""
    if path is None:
        return NO_SHEDDING
    try:
        found = json.loads(Path(path).read_bytes())
        if time.time() >= found.pop("until"):
            return NO_SHEDDING
        return ShedPlan(**found)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, UsageError):
        return NO_SHEDDING


def kept_by_number(rates: KeepRates, seed: int, part: int, numbers: Any) -> NDArray[np.intp]:
    """Which rows of a stream are kept, by their numbers alone."""
    return np.flatnonzero(chances(seed ^ _SALT, part, numbers) < rates.others)


def kept_by_content(
    rates: KeepRates, shedding: Shedding, rows: pa.RecordBatch, luck: Floats
) -> NDArray[np.intp]:
    """Which rows are kept where columns decide.

    Parameters
    ----------
    luck
        Of each row, where no columns say which go together.
    """
    if shedding.by:
        luck = luck_by_key([rows.column(name) for name in shedding.by])
    rate = np.full(rows.num_rows, rates.others)
    if shedding.spare is not None:
        column, comparison, value = parse_predicate(shedding.spare)
        spared = _COMPARISONS[comparison](rows.column(column), pa.scalar(value))
        rate[pc.fill_null(spared, False).to_numpy(zero_copy_only=False)] = rates.spared
    return np.flatnonzero(luck < rate)


def row_luck(seed: int, part: int, numbers: Any) -> Floats:
    """A number between 0 and 1 for each row of a stream."""
    return chances(seed ^ _SALT, part, numbers)


def luck_by_key(columns: list[pa.Array]) -> Floats:
    """Numbers between 0 and 1 that depend on the keys alone, whichever source has them.

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
