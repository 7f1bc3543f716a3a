"""Engines seen from outside: operators, the threads that run them, and figures of both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Values = Mapping[str, float]  # of operators, by their names

# How the distance of two priorities is meant: linear (a queue of 20 against one of 10), in powers
# (rates that span decades), or as the very ratio of CPU time that is asked for.
Scale = Literal["linear", "log", "ratio"]


class Thread(NamedTuple):
    """One thread; its start tells it from a later one that got the same number."""

    pid: int
    tid: int
    started: int  # ticks since boot


@dataclass(frozen=True, slots=True)
class Operator:
    """A physical operator: the smallest part of a query that has threads of its own."""

    name: str  # unique within its engine
    query: str
    logical: tuple[str, ...] = ()  # operators of the user's plan; several: they were fused
    downstream: tuple[str, ...] = ()  # names of those that read what it writes
    threads: tuple[Thread, ...] = ()  # none: it does not run, or not on this machine
    helper: bool = False  # works for a query but has no tuples of its own
    source: bool = False  # reads from outside the query
    vertex: str = ""  # the same for all copies of an operator, which share its input


@dataclass(frozen=True, slots=True)
class Reading:
    """What a driver saw of its engine at one moment."""

    at_s: float
    operators: tuple[Operator, ...] = ()
    metrics: Mapping[str, Values] = field(default_factory=dict)  # by the metric's name

    def upstream(self) -> dict[str, tuple[str, ...]]:
        """Return for each operator the names of those that it reads from."""
        found: dict[str, list[str]] = {operator.name: [] for operator in self.operators}
        for operator in self.operators:
            for name in operator.downstream:
                if name in found:
                    found[name].append(operator.name)
        return {name: tuple(names) for name, names in found.items()}


@dataclass(frozen=True, slots=True)
class Priorities:
    """What a policy wants: larger is more important."""

    of: Values  # by the operator's name
    scale: Scale = "linear"
