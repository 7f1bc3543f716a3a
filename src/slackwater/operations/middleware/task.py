"""One policy with its period, scope and translator."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from slackwater import enforce, policies
from slackwater.core.entities import Operator, Priorities, Values
from slackwater.enforce import Ranked
from slackwater.enforce.settings import Setting
from slackwater.enforce.transform import RULES
from slackwater.operations.middleware.condition import parse_condition
from slackwater.operations.middleware.engine import Engine
from slackwater.operations.middleware.file import PolicySection
from slackwater.policies import Policy

AGES = frozenset({"head-age", "head-wait"})
MEANS = frozenset({"cost", "selectivity", "path-cost", "path-selectivity", "highest-rate"})

NAMES_SHOWN = 10


class PolicyTask:
    """Decides for its part of the engines.

    Parameters
    ----------
    name, section
        As in the file.
    engines
        Names of all engines.
    """

    def __init__(self, name: str, section: PolicySection, engines: Iterable[str]) -> None:
        self.name = name
        self.section = section
        self.engines = tuple(section.engines or engines)
        self.policy: Policy | None = (
            None if section.policy is None else policies.load(section.policy, **section.parameters)
        )
        self.translator = enforce.load(section.translator, **section.translator_parameters)
        self.condition = None if section.when is None else parse_condition(section.when)
        self.by_hand: bool | None = None  # on or off, whatever the file says
        self.active = False
        self.due_s = 0.0
        self._queries = re.compile(section.queries)
        self._looked = False  # for operators that its priorities name

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that it needs."""
        own = () if self.policy is None else self.policy.metrics
        return own if self.condition is None else (*own, self.condition.metric)

    def due(self, now_s: float) -> bool:
        """Tell whether its period has passed; the next one is counted from when it should be."""
        if now_s < self.due_s <= now_s + self.section.period:  # else the clock was set back
            return False
        late = now_s - self.due_s >= self.section.period
        self.due_s = (now_s if late else self.due_s) + self.section.period
        return True

    def wants_to_act(self, engines: Sequence[Engine]) -> bool:
        """Tell whether it is switched on: by hand, or by its condition, or as the file says."""
        if self.by_hand is not None:
            return self.by_hand
        if self.condition is None:
            return self.section.enabled
        scoped: dict[str, float] = {}
        for engine in engines:
            names = {operator.name for operator in self._scope(engine)}
            values = engine.values.get(self.condition.metric, {})
            scoped |= {f"{engine.name}/{n}": value for n, value in values.items() if n in names}
        return self.section.enabled and self.condition.holds({self.condition.metric: scoped})

    def plan(self, engines: Sequence[Engine], now_s: float) -> list[Setting]:
        """Return what it wants to be set now."""
        scale = self.section.scale or ("ratio" if self.policy is None else self.policy.scale)
        ranked = []
        for engine in engines:
            operators = self._scope(engine)
            priorities = dict(self._priorities(operators, engine.values, now_s))
            if priorities:  # whoever works for all is as important as the most important
                helpers = self._scope(engine, helpers=True)
                highest = max(priorities.values())
                priorities |= dict.fromkeys((helper.name for helper in helpers), highest)
                operators += helpers
            ranked += [
                Ranked(operator, priorities[operator.name], engine.name)
                for operator in operators
                if operator.name in priorities
            ]
        return self.translator.plan(ranked, scale)

    def unknown_operators(self, engines: Sequence[Engine]) -> str | None:
        """Name what its ``priorities`` name and none of the operators in its scope has.

        In one line, and once, when all of its engines are there.
        """
        if self._looked or not self.section.priorities or len(engines) < len(self.engines):
            return None
        operators = [operator for engine in engines for operator in self._scope(engine)]
        known = sorted({name for each in operators for name in each.logical or (each.name,)})
        unknown = [name for name in self.section.priorities if name not in known]
        self._looked = bool(known)  # an engine may have nothing to show yet
        if not unknown or not known:
            return None
        shown = ", ".join(known[:NAMES_SHOWN]) + (", …" if len(known) > NAMES_SHOWN else "")
        return f"{self.name}: no operator named {', '.join(unknown)}; these are: {shown}"

    def _scope(self, engine: Engine, helpers: bool = False) -> list[Operator]:
        if engine.reading is None:
            return []
        return [
            operator
            for operator in engine.reading.operators
            if operator.helper == helpers
            and (helpers or self._queries.fullmatch(operator.query))  # those are no query's
        ]

    def _priorities(
        self, operators: Sequence[Operator], metrics: Mapping[str, Values], now_s: float
    ) -> Values:
        rule = RULES[self.section.rule]
        if self.policy is None:
            return rule(self.section.priorities, operators)
        if self.section.operators == "physical":
            return self.policy.priorities(operators, metrics, now_s).of
        named = [_with_query(operator) for operator in operators]
        merged = {name: merge(name, values, named) for name, values in metrics.items()}
        decided: Priorities = self.policy.priorities(logical_operators(named), merged, now_s)
        return rule(decided.of, named)


def logical_operators(operators: Iterable[Operator]) -> list[Operator]:
    """Return the operators that the user wrote, as far as the engine tells them.

    >>> copies = [Operator(f"map-{i}", "q", ("map",)) for i in range(2)]
    >>> [operator.name for operator in logical_operators(copies)]
    ['map']
    """
    found: dict[str, Operator] = {}
    for operator in operators:
        for name in operator.logical or (operator.name,):
            found.setdefault(name, Operator(name, operator.query, source=operator.source))
    return list(found.values())


def merge(metric: str, values: Values, operators: Iterable[Operator]) -> dict[str, float]:
    """Merge a figure of physical operators into one of each logical one.

    What is counted is added up, of ages the largest counts, of costs and the like the mean.

    >>> copies = [Operator(f"map-{i}", "q", ("map",)) for i in range(2)]
    >>> metrics, values = ("queue-size", "head-age", "cost"), {"map-0": 3, "map-1": 5}
    >>> [merge(metric, values, copies)["map"] for metric in metrics]
    [8, 5, 4.0]
    """
    found: dict[str, list[float]] = {}
    for operator in operators:
        for name in operator.logical or (operator.name,):
            if operator.name in values:
                found.setdefault(name, []).append(values[operator.name])
    if metric in AGES:
        return {name: max(each) for name, each in found.items()}
    if metric in MEANS:
        return {name: sum(each) / len(each) for name, each in found.items()}
    return {name: sum(each) for name, each in found.items()}


def _with_query(operator: Operator) -> Operator:
    """Add the query to the names: operators of two queries may have one name."""
    logical = operator.logical or (operator.name,)
    return replace(operator, logical=tuple(f"{operator.query}/{name}" for name in logical))
