"""Metrics that are computed from others where an engine does not tell them itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from slackwater.core.entities import Reading, Values
from slackwater.core.errors import UsageError


class Metric(ABC):
    """A derived metric: what it is made of, and how.

    A member writes :meth:`_compute`. It may remember earlier readings: every provider has metrics
    of its own. Operators whose value cannot be told are left out, never given as zero.
    """

    name: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()

    def compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        """Return the values of all operators that can be told."""
        return self._compute(inputs, reading)

    @abstractmethod
    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        """Compute from ``inputs``, which holds what ``needs`` names."""


class MetricProvider:
    """Finds each wanted metric for one engine: told by it, or else derived along the graph.

    A metric may be derived in more than one way; the first whose primitives the engine has is
    taken. What to do is settled once, at the start, so that a missing primitive is an error of the
    configuration and not of some later period.

    Parameters
    ----------
    engine
        Its name, for messages.
    provides
        Metrics that the engine's driver tells.
    wanted
        Metrics that policies ask for.
    ways
        All that can be derived; default: :func:`slackwater.metrics.standard.standard_metrics`.

    References
    ----------
    Palyvos-Giannas et al., *Lachesis*, Middleware 2021, Algorithm 3.
    """

    def __init__(
        self,
        engine: str,
        provides: Iterable[str],
        wanted: Iterable[str],
        ways: Iterable[Metric] | None = None,
    ) -> None:
        from slackwater.metrics.standard import standard_metrics

        self.engine = engine
        self._provides = frozenset(provides)
        self._ways: dict[str, list[Metric]] = {}
        for metric in standard_metrics() if ways is None else ways:
            self._ways.setdefault(metric.name, []).append(metric)
        self._chosen: dict[str, Metric] = {}
        self.wanted = tuple(dict.fromkeys(wanted))
        for name in self.wanted:
            missing = self._settle(name, ())
            if missing:
                raise UsageError(self._complaint(name, missing))

    def update(self, reading: Reading) -> dict[str, Values]:
        """Compute all wanted metrics of one reading, each once."""
        cache: dict[str, Values] = {}
        return {name: self._value(name, reading, cache) for name in self.wanted}

    def _value(self, name: str, reading: Reading, cache: dict[str, Values]) -> Values:
        if name not in cache:
            metric = self._chosen.get(name)
            if metric is None:
                cache[name] = reading.metrics.get(name, {})
            else:
                inputs = {need: self._value(need, reading, cache) for need in metric.needs}
                cache[name] = metric.compute(inputs, reading)
        return cache[name]

    def _settle(self, name: str, above: tuple[str, ...]) -> set[str]:
        """Choose how ``name`` is had; the primitives that are missing, none if it can be had."""
        if name in self._provides or name in self._chosen:
            return set()
        ways = [way for way in self._ways.get(name, ()) if not {name, *above} & {*way.needs}]
        if not ways:
            return {name}
        missing: list[set[str]] = []
        for way in ways:
            lacking = set().union(*(self._settle(need, (*above, name)) for need in way.needs))
            if not lacking:
                self._chosen[name] = way
                return set()
            missing.append(lacking)
        return min(missing, key=len)

    def _complaint(self, name: str, missing: set[str]) -> str:
        told = ", ".join(sorted(self._provides)) or "nothing"
        lacking = " and ".join(repr(each) for each in sorted(missing))
        are = "is" if len(missing) == 1 else "are"
        via = "" if missing == {name} else f" because {lacking} {are} missing"
        return (
            f"engine {self.engine!r} cannot give the metric {name!r}{via}: it tells {told}; choose "
            "a policy that needs less, or a driver that tells more"
        )
