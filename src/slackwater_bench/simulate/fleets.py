"""The benchmarks as pipelines of operators.

Rates, windows and the shape of each pipeline are the papers'. What an event costs is not in them:
it is chosen so that 80 queries take 79 % of 24 cores, with which the published throughputs come out
(2.5 million events/s for all others, 3.25 for Klink). Nothing else is fitted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.core.errors import UsageError
from slackwater.engines.simulator.arrivals import parse_arrivals
from slackwater.engines.simulator.pipeline import PipelineOperator, PipelineQuery

US = 1e-6
DEPLOYED_WITHIN_S = 20.0  # queries start at random times


@dataclass(frozen=True, slots=True)
class Shape:
    """What all queries of a workload have in common."""

    operators: tuple[PipelineOperator, ...]
    rate: float
    window_s: float
    slide_s: float | None = None
    streams: int = 1


SHAPES = {
    "ysb": Shape(
        (
            PipelineOperator("source", 1.5 * US),
            PipelineOperator("parse", 3.5 * US),
            PipelineOperator("filter", 1.0 * US, selectivity=1 / 3),
            PipelineOperator("project", 4.0 * US),
            PipelineOperator("join", 16.0 * US),
            PipelineOperator("count", 33.0 * US),
        ),
        rate=10_000.0,
        window_s=3.0,
    ),
    "linear-road": Shape(
        (
            PipelineOperator("source", 2.0 * US),
            PipelineOperator("statistics", 4.0 * US, selectivity=0.4),
            PipelineOperator("join", 27.0 * US, selectivity=0.5, keeps=True),
            PipelineOperator("tolls", 37.5 * US),
        ),
        rate=9_750.0,
        window_s=5.0,
        slide_s=3.0,
        streams=3,
    ),
    "nyc-taxi": Shape(
        (
            PipelineOperator("source", 2.0 * US),
            PipelineOperator("parse", 5.0 * US),
            PipelineOperator("locate", 3.0 * US, selectivity=0.5),
            PipelineOperator("project", 7.0 * US),
            PipelineOperator("group", 13.7 * US),
            PipelineOperator("average", 27.0 * US),
        ),
        rate=7_000.0,
        window_s=2.0,
        slide_s=1.0,
    ),
}


def fleet(
    workload: str,
    queries: int,
    *,
    delays: str = "uniform:0:300ms",
    arrivals: str = "even",
    load: float = 1.0,
    uneven: float = 1.0,
    seed: int = 1,
) -> list[PipelineQuery]:
    """Make so many queries, each with windows at times of its own.

    Parameters
    ----------
    arrivals
        As :func:`~slackwater.engines.simulator.arrivals.parse_arrivals` reads them.
    load
        Factor on every rate.
    uneven
        So many times as much does the second half of its operators cost in one query of ten, and in
        the others so much less that all together take the same.

    >>> [query.name for query in fleet("ysb", 2)]
    ['ysb-0000', 'ysb-0001']
    """
    if workload not in SHAPES:
        raise UsageError(f"unknown workload {workload!r}; known: {', '.join(SHAPES)}")
    shape, rng = SHAPES[workload], np.random.default_rng(seed)
    bursts, heavy = parse_arrivals(arrivals), _heavy(queries, seed)
    light = (queries - uneven * len(heavy)) / max(1, queries - len(heavy))
    if light <= 0:
        raise UsageError(f"uneven must stay below {queries / len(heavy):g}, not {uneven:g}")
    return [
        PipelineQuery(
            name=f"{workload}-{number:04d}",
            operators=_costlier(shape.operators, uneven if number in heavy else light),
            rate=shape.rate * load,
            window_s=shape.window_s,
            slide_s=shape.slide_s,
            streams=shape.streams,
            delays=delays,
            bursts=bursts,
            phase_s=float(rng.uniform(0.0, shape.slide_s or shape.window_s)),
            starts_s=float(rng.uniform(0.0, DEPLOYED_WITHIN_S)),
        )
        for number in range(queries)
    ]


def _heavy(queries: int, seed: int) -> set[int]:
    """Choose one in ten, at least one."""
    rng = np.random.default_rng((seed, queries))
    return set(rng.permutation(queries)[: max(1, queries // 10)].tolist())


def _costlier(operators: Sequence[PipelineOperator], factor: float) -> tuple[PipelineOperator, ...]:
    half = len(operators) // 2
    changed = (replace(each, cost_s=factor * each.cost_s) for each in operators[half:])
    return *operators[:half], *changed


def synthetic(
    queries: int, *, cores: int, load: float, blocking: float = 0.0, seed: int = 1
) -> list[PipelineQuery]:
    """Make chains of five operators with random costs and selectivities.

    Parameters
    ----------
    cores, load
        All queries together take so large a share of so many cores.
    blocking
        Of the operators, the share that also waits for something else than a core: for each
        event as long as it computes.
    """
    rng = np.random.default_rng(seed)
    chains = [
        tuple(
            PipelineOperator(
                f"o{number}",
                cost_s=float(rng.uniform(0.2, 1.8)),
                selectivity=float(rng.uniform(0.4, 1.0)) if number < 4 else 1.0,
            )
            for number in range(5)
        )
        for _ in range(queries)
    ]
    blocks = rng.random((queries, 5)) < blocking
    found = [
        PipelineQuery(
            name=f"q{number:04d}",
            operators=chain,
            rate=1000.0,
            window_s=1.0,
            phase_s=float(rng.uniform(0, 1)),
        )
        for number, chain in enumerate(chains)
    ]
    wanted = sum(query.rate * float(query.work_s.sum()) for query in found)
    scale = cores * load / wanted
    return [
        replace(query, operators=_scaled(query.operators, scale, blocked))
        for query, blocked in zip(found, blocks.tolist(), strict=True)
    ]


def _scaled(
    operators: Sequence[PipelineOperator], scale: float, blocked: Sequence[bool]
) -> tuple[PipelineOperator, ...]:
    make: Callable[[PipelineOperator, bool], PipelineOperator] = lambda one, blocks: replace(  # noqa: E731
        one, cost_s=one.cost_s * scale, blocked_s=one.cost_s * scale if blocks else 0.0
    )
    return tuple(map(make, operators, blocked))
