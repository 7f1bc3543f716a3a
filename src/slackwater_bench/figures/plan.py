"""Which figures there are, and what makes each."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from slackwater.core.errors import UsageError
from slackwater_bench.figures import engines, kinds, windows
from slackwater_bench.figures.markdown import Row

YSB = "spark,spark-trigger:0.5,klink:one_batch=off,klink"
RIVALS = "spark,spark-trigger:1,spark-trigger:2,spark-trigger:5,spark-tuned,klink"
HARM = "spark,spark-tuned,klink"


@dataclass(frozen=True)
class Figure:
    """One table."""

    name: str  # of its result file, and of its place in a page
    command: str  # of ``slackwater``, without ``--json``
    minutes: float  # at a guess
    quick: str | None = None  # a shorter one; None: only the whole
    quick_minutes: float = 0.0
    reduce: Callable[[dict[str, Any]], list[Row]] = windows.reduce
    table: Callable[[Sequence[Row]], str] = windows.table
    outside: bool = False  # parts of it run outside the tree of processes: a broker

    def arguments(self, quick: bool) -> list[str]:
        """Return what follows ``slackwater``."""
        return shlex.split(self.quick or self.command if quick else self.command)


def _harm(fleet: str, warmup: int = 25) -> Figure:
    command = f"bench mixed --fleet {fleet} --policies {HARM} --seconds 40 --warmup {warmup}"
    return Figure(f"harm-{fleet}", command, 4, reduce=kinds.reduce, table=kinds.table)


PLAN: tuple[Figure, ...] = (
    Figure(
        "ysb-11",
        f"bench ysb --policies {YSB} --queries 11 --seconds 24 --warmup 12 --repeat 3",
        13,
        f"bench ysb --policies {YSB} --queries 11 --seconds 24 --warmup 12",
        5,
    ),
    Figure(
        "ysb-8-kafka",
        f"bench ysb --source kafka --policies {YSB} --queries 8 --seconds 24 --warmup 12 "
        "--repeat 3",
        13,
        outside=True,
    ),
    Figure(
        "aligned-8",
        "bench ysb --aligned --policies spark-trigger:0.5,spark-trigger:1,klink --queries 8 "
        "--seconds 36 --warmup 12",
        4,
    ),
    Figure(
        "mixed",
        f"bench mixed --policies {RIVALS} --seconds 40 --warmup 25 --promise --repeat 3",
        28,
        f"bench mixed --policies {RIVALS} --seconds 40 --warmup 25 --promise",
        10,
        kinds.reduce,
        kinds.table,
    ),
    _harm("sinks"),
    _harm("triggers"),
    _harm("huge"),
    _harm("bursts"),
    Figure(
        "versus",
        "bench versus --queries 1,2,4,8 --seconds 30 --warmup 15 --checkpoint 30",
        18,
        "bench versus --queries 1,4 --seconds 30 --warmup 15 --checkpoint 30",
        8,
        engines.reduce,
        engines.table,
        outside=True,
    ),
)


def chosen(names: Sequence[str]) -> list[Figure]:
    """Return the figures with these names; none: all.

    >>> [figure.name for figure in chosen(["versus"])]
    ['versus']
    """
    known = {figure.name: figure for figure in PLAN}
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"no figure {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names or known]
