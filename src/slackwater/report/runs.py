"""All runs of a result, by policy and number of queries."""

from collections.abc import Callable
from typing import Any

from slackwater.report.reading import entries, number
from slackwater.report.run import Run
from slackwater.statistics.intervals import Array


class Runs:
    """The runs of a result.

    Parameters
    ----------
    result
        What ``--json`` writes; anything in it may be missing.

    >>> runs = Runs({"queries": 8, "runs": [{"policy": "b"}, {"policy": "a"}, None]})
    >>> runs.policies, runs.counts
    (['b', 'a'], [8])
    """

    def __init__(self, result: dict[str, Any]) -> None:
        queries = int(number(result.get("queries")) or 0)
        self.every = [Run.read(raw, queries) for raw in entries(result.get("runs"))]
        self.policies = list(dict.fromkeys(run.policy for run in self.every))
        self.counts = sorted({run.queries for run in self.every})

    @property
    def largest(self) -> int:
        """The number of queries that plots of a single number show: the heaviest load."""
        return self.counts[-1] if self.counts else 0

    def of(self, policy: str, queries: int) -> list[Run]:
        """The repeats of a policy in their order."""
        mine = [run for run in self.every if (run.policy, run.queries) == (policy, queries)]
        return sorted(mine, key=lambda run: run.repeat)

    def latencies(self, policy: str, queries: int) -> list[Array]:
        """Latencies of every window, an array for each run that has some."""
        found = [run.latencies_s for run in self.of(policy, queries)]
        return [values for values in found if len(values)]

    def slowdowns(self, policy: str, queries: int) -> list[Array]:
        """Slowdowns of every window, an array for each run that has some."""
        found = [run.slowdowns for run in self.of(policy, queries)]
        return [values for values in found if len(values)]

    def figures(
        self, policy: str, queries: int, figure: Callable[[Run], float | None]
    ) -> list[list[float]]:
        """One figure of each run that has it, in the shape that intervals want.

        >>> runs = Runs({"queries": 8, "runs": [{"policy": "a", "cpu_s": 3.0}, {"policy": "a"}]})
        >>> runs.figures("a", 8, lambda run: run.cpu_s)
        [[3.0]]
        """
        found = [figure(run) for run in self.of(policy, queries)]
        return [[value] for value in found if value is not None]
