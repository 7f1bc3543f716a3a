"""Workloads as SQL for Flink: statements that are submitted as they are, without a compile step."""

from collections.abc import Callable

from slackwater.core.errors import UsageError
from slackwater_bench.workloads.flink import etl, linear_road, synthetic
from slackwater_bench.workloads.riot_etl import RiotEtl
from slackwater_bench.workloads.road_reports import RoadReports
from slackwater_bench.workloads.synthetic import Synthetic

# From number, rate, seed and work to the query's name and statements.
Choice = Callable[[int, int, int, int], tuple[str, list[str]]]


def choose(workload: str) -> Choice:
    """The statements of a workload by its name."""
    if workload not in _CHOICES:
        raise UsageError(f"{workload} is not written for Flink; these are: {', '.join(_CHOICES)}")
    return _CHOICES[workload]


def _synthetic(number: int, rate: int, seed: int, work: int) -> tuple[str, list[str]]:
    query = Synthetic(number=number, seed=seed, work=work)
    return query.name, synthetic.statements(query, rate)


def _etl(number: int, rate: int, seed: int, work: int) -> tuple[str, list[str]]:
    query = RiotEtl(number=number, seed=seed)
    return query.name, etl.statements(query, rate)


def _linear_road(number: int, rate: int, seed: int, work: int) -> tuple[str, list[str]]:
    query = RoadReports(number=number, seed=seed)
    return query.name, linear_road.statements(query, rate)


_CHOICES: dict[str, Choice] = {
    "synthetic": _synthetic,
    "etl": _etl,
    "linear-road": _linear_road,
}
