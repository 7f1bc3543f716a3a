"""When a policy is to act: a metric of the operators in its scope against a number."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from slackwater.core.entities import Values
from slackwater.core.errors import UsageError

_FORM = re.compile(r"^\s*(?P<metric>[a-z-]+)\.(?P<of>\w+)\s*(?P<sign>[<>]=?)\s*(?P<bound>\S+)\s*$")
_OF: dict[str, Callable[[Iterable[float]], float]] = {
    "max": max,
    "min": min,
    "mean": fmean,
    "sum": sum,
}
_SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True, slots=True)
class Condition:
    """Holds or not; nothing known is not.

    >>> condition = parse_condition("queue-size.max > 100")
    >>> condition.holds({"queue-size": {"a": 20.0, "b": 130.0}})
    True
    >>> condition.holds({"queue-size": {}})
    False
    """

    metric: str
    of: str
    sign: str
    bound: float

    def holds(self, metrics: Mapping[str, Values]) -> bool:
        values = list(metrics.get(self.metric, {}).values())
        return bool(values) and bool(_SIGNS[self.sign](_OF[self.of](values), self.bound))


def parse_condition(text: str) -> Condition:
    """Read one.

    >>> parse_condition("queues > 3")
    Traceback (most recent call last):
    ...
    slackwater.core.errors.UsageError: 'queues > 3' is no condition such as 'queue-size.max > 1000'
    """
    match = _FORM.match(text)
    try:
        if match is not None and match["of"] in _OF:
            return Condition(match["metric"], match["of"], match["sign"], float(match["bound"]))
    except ValueError:
        pass
    raise UsageError(f"{text!r} is no condition such as 'queue-size.max > 1000'")
