"""From priorities of what the user wrote to priorities of what the engine made of it."""

from collections.abc import Callable, Iterable

from slackwater.core.entities import Operator, Values

Rule = Callable[[Values, Iterable[Operator]], dict[str, float]]


def highest_of_fused(logical: Values, operators: Iterable[Operator]) -> dict[str, float]:
    """Give the physical operator of several logical ones the highest of their priorities.

    Copies of one logical operator all get its priority. What nobody gave a priority to has none.

    >>> fused = Operator("p1", "q", logical=("parse", "filter"))
    >>> copies = [Operator(f"count-{i}", "q", logical=("count",)) for i in range(2)]
    >>> highest_of_fused({"parse": 1, "filter": 5, "count": 3}, [fused, *copies])
    {'p1': 5, 'count-0': 3, 'count-1': 3}
    """
    return _combined(logical, operators, max)


def mean_of_fused(logical: Values, operators: Iterable[Operator]) -> dict[str, float]:
    """Give it their mean: for policies in which many small needs are no large one.

    >>> mean_of_fused({"parse": 1, "filter": 5}, [Operator("p1", "q", logical=("parse", "filter"))])
    {'p1': 3.0}
    """
    return _combined(logical, operators, lambda values: sum(values) / len(values))


def _combined(
    logical: Values, operators: Iterable[Operator], combine: Callable[[list[float]], float]
) -> dict[str, float]:
    found = {}
    for operator in operators:
        names = operator.logical or (operator.name,)
        values = [logical[name] for name in names if name in logical]
        if values:
            found[operator.name] = combine(values)
    return found


RULES: dict[str, Rule] = {"highest": highest_of_fused, "mean": mean_of_fused}
