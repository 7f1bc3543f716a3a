"""How far a query has read: positions in every stream, and which rows were withheld so far.

A ledger's *event-time ceiling* withholds rows: with the ceiling ``c``, a query has been handed the
rows before its positions whose event time lies below ``c``. What a micro-batch gets is then a
function of its two offsets alone (see ``spans``).

A row that was planned at time ``t`` counts as no younger than ``t`` and a tolerated skew of clocks,
whatever its event time says. So only what was planned at ``c`` less that skew or later can contain
withheld rows, and the offset keeps where that began: nothing else has to be read again.
"""

from dataclasses import dataclass
from typing import Any

from slackwater.engines.spark.sources.log.log import Positions
from slackwater.quality.rates import EVERYTHING, KeepRates
from slackwater.sampling.ledger import Ledger

Json = dict[str, Any]

SKEW_US = 5_000_000  # how far ahead of ours a producer's clock may be


@dataclass(frozen=True)
class Held:
    """Rows of one earlier micro-batch some of which may be withheld."""

    planned_us: int
    horizon_us: int  # when that micro-batch began to be planned, all that arrived by then was read
    first: Positions  # where that micro-batch began; the next one began where it ended

    def json(self) -> list[Any]:
        return [self.planned_us, self.horizon_us, self.first]


@dataclass(frozen=True)
class LogOffset:
    """What Spark keeps in its checkpoint."""

    rows: int  # before the positions, in all streams
    planned_us: int  # when the micro-batch that ends here was planned; never goes back
    horizon_us: int  # all rows that arrived until then lie before the positions
    at: Positions
    begin: Positions | None = None  # of streams that the offset before does not know for sure
    is_initial: bool = False  # made anew whenever Spark starts without a committed micro-batch
    ledger: Ledger | None = None  # None: rows are neither withheld nor sampled
    held: tuple[Held, ...] = ()  # oldest first
    keep: KeepRates = EVERYTHING  # how much of the micro-batch that ends here is not shed

    @classmethod
    def parse(cls, json: Json) -> "LogOffset":
        return cls(
            rows=json["n"],
            planned_us=json["t"],
            horizon_us=json["h"],
            at=json["at"],
            begin=json.get("begin"),
            is_initial=json.get("initial", False),
            ledger=Ledger.of_json(json["s"]) if "s" in json else None,
            held=tuple(Held(*entry) for entry in json.get("held", ())),
            keep=KeepRates.of_numbers(json.get("k")),
        )

    def json(self) -> Json:
        """As Spark takes it. The key ``n`` is what the backlog is computed from."""
        found: Json = {"n": self.rows, "t": self.planned_us, "h": self.horizon_us, "at": self.at}
        if self.begin:
            found["begin"] = self.begin
        if self.is_initial:
            found["initial"] = True
        if self.ledger is not None:
            found["s"] = self.ledger.to_json()
        if self.held:
            found["held"] = [entry.json() for entry in self.held]
        if self.keep.sheds:
            found["k"] = self.keep.numbers
        return found

    @property
    def ceiling_us(self) -> int | None:
        return None if self.ledger is None else self.ledger.ceiling_us


def still_held(
    start: LogOffset, begin: Positions, at: Positions, planned_us: int, ceiling_us: int | None
) -> tuple[Held, ...]:
    """What may hold withheld rows after the micro-batch from ``begin`` to ``at``.

    >>> start = LogOffset(rows=5, planned_us=100, horizon_us=100, at={"s": 5},
    ...                   held=(Held(90, 80, {"s": 2}), Held(100, 90, {"s": 4})))
    >>> ceiling_us = 95 + SKEW_US
    >>> [held.planned_us for held in still_held(start, start.at, {"s": 7}, 130, ceiling_us)]
    [100, 130]
    >>> [held.planned_us for held in still_held(start, start.at, start.at, 130, ceiling_us)]
    [100]
    >>> still_held(start, start.at, {"s": 7}, 130, None)
    ()
    """
    if ceiling_us is None:
        return ()
    new = () if at == begin else (Held(planned_us, start.horizon_us, begin),)
    return tuple(held for held in (*start.held, *new) if held.planned_us + SKEW_US >= ceiling_us)
