"""The metrics that policies ask for, and how they follow from what engines count."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from slackwater.core.entities import Reading, Values
from slackwater.metrics.graph import Metric
from slackwater.statistics.arrival_rate import CounterRate
from slackwater.statistics.online import Smoothed

HISTORY = 600  # readings that the time of an arrival is looked up in


class _Rate(Metric):
    """Change of a counter in a second, since the reading before."""

    def __init__(self) -> None:
        self._rates: dict[str, CounterRate] = {}

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        counts = inputs[self.needs[0]]
        self._rates = {name: self._rates.get(name) or CounterRate() for name in counts}
        rates = {name: self._rates[name].update(reading.at_s, n) for name, n in counts.items()}
        return {name: rate for name, rate in rates.items() if rate is not None}


class InputRate(_Rate):
    """Tuples per second that an operator takes in."""

    name = "input-rate"
    needs: ClassVar = ("tuples-in",)


class BusyShare(_Rate):
    """Share of the time in which an operator works, as its engine counts it."""

    name = "busy-share"
    needs: ClassVar = ("busy-time",)


class CpuShare(_Rate):
    """Share of one CPU that an operator's threads use."""

    name = "cpu-share"
    needs: ClassVar = ("cpu-time",)


class Arrivals(Metric):
    """Tuples that its upstream operators have written for an operator so far.

    Where these write to several copies of it, engines do not tell how many went to which: each copy
    is taken to have had its share of what all of them have taken in. The queues of all copies
    together are exact then.
    """

    name = "arrivals"
    needs: ClassVar = ("tuples-out", "tuples-in")

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        written, taken = inputs["tuples-out"], inputs["tuples-in"]
        vertices = {operator.name: operator.vertex for operator in reading.operators}
        found: dict[str, float] = defaultdict(float)
        untold = set()
        for operator in reading.operators:
            for copies in _copies(operator.downstream, vertices):
                if operator.name in written:
                    for name, share in _shares(copies, taken).items():
                        found[name] += written[operator.name] * share
                else:
                    untold.update(copies)
        return {name: arrived for name, arrived in found.items() if name not in untold}


class QueueFromCounts(Metric):
    """Tuples before an operator: what has arrived less what was taken in."""

    name = "queue-size"
    needs: ClassVar = ("arrivals", "tuples-in")

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        taken = inputs["tuples-in"]
        return {
            name: max(0.0, arrived - taken[name])
            for name, arrived in inputs["arrivals"].items()
            if name in taken
        }


class QueueFromWaiting(Metric):
    """What arrives while the oldest tuple waits, for engines that read all that is there."""

    name = "queue-size"
    needs: ClassVar = ("arrival-rate", "head-age")

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        return _together(inputs["arrival-rate"], inputs["head-age"], lambda rate, age: rate * age)


class HeadWait(Metric):
    """Seconds that the first tuple of a queue has been in it.

    Queues are in order: the first one came when the count of arrivals passed the count of tuples
    taken in. Between two readings tuples are taken to arrive evenly.
    """

    name = "head-wait"
    needs: ClassVar = ("arrivals", "tuples-in")

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, float]]] = defaultdict(
            lambda: deque(maxlen=HISTORY)
        )

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        found = {}
        for name, arrived in inputs["arrivals"].items():
            if name in inputs["tuples-in"]:
                taken = inputs["tuples-in"][name]
                found[name] = reading.at_s - self._came_s(name, arrived, taken, reading.at_s)
        for name in self._seen.keys() - inputs["arrivals"].keys():
            del self._seen[name]
        return found

    def _came_s(self, name: str, arrived: float, taken: float, now_s: float) -> float:
        """Return when the tuple after ``taken`` came; now if it has not."""
        seen = self._seen[name]
        if seen and arrived < seen[0][1]:  # started anew
            seen.clear()
        elif seen:  # shares of copies are estimates and may shift a little
            arrived = max(arrived, seen[-1][1])
        seen.append((now_s, arrived))
        while len(seen) > 1 and seen[1][1] <= taken:
            seen.popleft()
        if arrived <= taken:
            return now_s
        (then_s, before) = seen[0]
        if before > taken or len(seen) == 1:
            return then_s  # came before the first reading
        (next_s, after) = seen[1]
        return then_s + (next_s - then_s) * (taken - before) / (after - before)


class HeadAge(Metric):
    """Seconds that the first tuple of a queue has been in the query: its wait and those before."""

    name = "head-age"
    needs: ClassVar = ("head-wait",)

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        waits, upstream = inputs["head-wait"], reading.upstream()
        known: dict[str, float] = {}

        def age(name: str, below: frozenset[str]) -> float:
            if name not in known:
                above = [each for each in upstream[name] if each not in below]
                before = max((age(each, below | {name}) for each in above), default=0.0)
                known[name] = waits.get(name, 0.0) + before
            return known[name]

        return {name: age(name, frozenset()) for name in waits if name in upstream}


class Selectivity(Metric):
    """Tuples out for one in; of the last operator of a path 1, because what it takes is a result.

    Where nothing came in yet it is not known.
    """

    name = "selectivity"
    needs: ClassVar = ("tuples-in", "tuples-out")

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        found = {}
        for operator in reading.operators:
            taken = inputs["tuples-in"].get(operator.name, 0.0)
            if not operator.downstream or operator.source:
                found[operator.name] = 1.0
            elif taken > 0 and operator.name in inputs["tuples-out"]:
                found[operator.name] = inputs["tuples-out"][operator.name] / taken
        return found


class _Cost(Metric):
    """Seconds of work for a tuple, smoothed; an operator that took nothing in keeps what it had.

    One period is too short a look: an operator that was held back has hardly run.
    """

    def __init__(self) -> None:
        self._smoothed: dict[str, Smoothed] = {}

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        shares, rates = (inputs[need] for need in self.needs)
        for name, share in shares.items():
            if rates.get(name, 0.0) > 0:
                self._smoothed.setdefault(name, Smoothed(0.2)).update(share / rates[name])
        present = {operator.name for operator in reading.operators}
        for name in self._smoothed.keys() - present:
            del self._smoothed[name]
        known = {name: smoothed.value for name, smoothed in self._smoothed.items()}
        return {name: value for name, value in known.items() if value is not None}


class CostFromBusyTime(_Cost):
    """Work as the engine counts it."""

    name = "cost"
    needs: ClassVar = ("busy-share", "input-rate")


class CostFromCpu(_Cost):
    """Work as CPU time of the threads."""

    name = "cost"
    needs: ClassVar = ("cpu-share", "input-rate")


class _Path(Metric):
    """Something added up from an operator to the ends of all paths that begin with it.

    A tuple goes to one of the copies of what is next: their mean counts.
    """

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        operators = {operator.name: operator for operator in reading.operators}
        vertices = {operator.name: operator.vertex for operator in reading.operators}
        known: dict[str, float] = {}

        def value(name: str, above: frozenset[str]) -> float:
            if name not in known:
                further = [each for each in operators[name].downstream if each not in above]
                below = [
                    sum(value(each, above | {name}) for each in copies) / len(copies)
                    for copies in _copies(further, vertices)
                ]
                known[name] = self._add(name, below, inputs)
            return known[name]

        told = set(operators).intersection(*(inputs[need].keys() for need in self.needs))
        return {name: value(name, frozenset()) for name in told}

    def _add(self, name: str, below: list[float], inputs: Mapping[str, Values]) -> float:
        raise NotImplementedError


class PathSelectivity(_Path):
    """Results for one tuple at an operator."""

    name = "path-selectivity"
    needs: ClassVar = ("selectivity",)

    def _add(self, name: str, below: list[float], inputs: Mapping[str, Values]) -> float:
        return inputs["selectivity"].get(name, 1.0) * (sum(below) if below else 1.0)


class PathCost(_Path):
    """Seconds of work that one tuple at an operator brings, its descendants' included."""

    name = "path-cost"
    needs: ClassVar = ("cost", "selectivity")

    def _add(self, name: str, below: list[float], inputs: Mapping[str, Values]) -> float:
        share = inputs["selectivity"].get(name, 1.0)
        return inputs["cost"].get(name, 0.0) + share * sum(below)


class OutputRate(Metric):
    """Results per second of work: what the policy Highest Rate goes by."""

    name = "highest-rate"
    needs: ClassVar = ("path-selectivity", "path-cost")

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        return _together(inputs["path-selectivity"], inputs["path-cost"], _ratio)


def standard_metrics() -> list[Metric]:
    """Make one of each, with a memory of its own; the preferred way to a metric comes first."""
    return [
        InputRate(),
        BusyShare(),
        CpuShare(),
        Arrivals(),
        QueueFromCounts(),
        QueueFromWaiting(),
        HeadWait(),
        HeadAge(),
        Selectivity(),
        CostFromCpu(),  # busy time also counts waiting for a CPU
        CostFromBusyTime(),
        PathSelectivity(),
        PathCost(),
        OutputRate(),
    ]


def _copies(names: Iterable[str], vertices: Mapping[str, str]) -> Iterable[list[str]]:
    """Group the copies of one operator.

    >>> list(_copies(["a0", "b", "a1"], {"a0": "a", "a1": "a", "b": ""}))
    [['a0', 'a1'], ['b']]
    """
    found: dict[str, list[str]] = {}
    for name in names:
        if name in vertices:
            found.setdefault(vertices[name] or name, []).append(name)
    return found.values()


def _shares(copies: list[str], taken: Values) -> dict[str, float]:
    """Return the share of each copy in what all have taken in; equal while that is nothing.

    >>> _shares(["a", "b"], {"a": 30, "b": 10}), _shares(["a", "b"], {})
    ({'a': 0.75, 'b': 0.25}, {'a': 0.5, 'b': 0.5})
    """
    total = sum(taken.get(name, 0.0) for name in copies)
    if not total:
        return dict.fromkeys(copies, 1 / len(copies))
    return {name: taken.get(name, 0.0) / total for name in copies}


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None


def _together(
    first: Values, second: Values, combine: Callable[[float, float], float | None]
) -> dict[str, float]:
    """Combine two figures of all operators that have both; ``None`` is left out."""
    pairs = {name: combine(first[name], second[name]) for name in first if name in second}
    return {name: value for name, value in pairs.items() if value is not None}
