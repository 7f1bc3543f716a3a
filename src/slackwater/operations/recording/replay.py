"""A recorded fleet in the simulator, under the policy that it had and under others."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from slackwater.core.errors import UsageError
from slackwater.engines.simulator.prediction import Machine, Prediction, predict
from slackwater.engines.simulator.query import BatchCosts, SimulatedQuery
from slackwater.operations.recording.recorded import RecordedQuery, Recording
from slackwater.report.result import BenchResult
from slackwater.traffic import Traffic

LEAST_S = 10.0  # of a recording
WARMUP_S = 10.0  # that the model gets before it counts
TRIES = 5  # at finding the work that makes batches as long as they were
NO_WINDOW_S = 1.0  # how often a query without windows is taken to run

Show = Callable[[str], None]


def replay(recorded: Recording, policies: Sequence[str], show: Show) -> BenchResult:
    """Tell what would have come of it, in the shape that ``bench --json`` has, for its report.

    Each query has its own windows, rate, watermark and costs of a batch, as they were seen. Batches
    that were seen took longer because others ran beside them; how much of that is work is found by
    replaying the recorded policy until its batches take as long as they did.
    """
    queries = {name: query for name, query in recorded.queries.items() if query.rows}
    if recorded.seconds < LEAST_S or not queries:
        raise UsageError(f"too little to replay: record {LEAST_S:g} s or more of running queries")
    show(f"fitting the costs of {len(queries)} queries")
    work = _work(recorded, queries)
    runs = [_recorded(recorded, queries)]
    for policy in dict.fromkeys([recorded.policy, *policies]):
        show(f"replaying under {policy}")
        found = _predict(recorded, queries, policy, work)
        latencies_s = [round(float(value), 4) for value in found.latencies_s]
        counted = recorded.seconds / (recorded.seconds + _warmup_s(queries))
        batches = round(found.batches * counted)
        runs.append(_row(f"{policy}, replayed", len(queries), latencies_s, batches))
    result: dict[str, Any] = {
        "workload": f"recording of {recorded.app_name}",
        "queries": len(queries),
        "query_counts": [len(queries)],
        "settings": {
            "recorded policy": recorded.policy,
            "seconds": round(recorded.seconds, 1),
            "slots": recorded.slots,
            "cores": recorded.cores,
            "work": round(work, 3),
        },
        "runs": runs,
    }
    return BenchResult(result)


def _simulated(
    recorded: Recording, query: RecordedQuery, number: int, work: float
) -> SimulatedQuery:
    spec, costs = query.spec, query.costs
    windows = spec.deadlines.closing
    delays = [each.watermark_delay_s for each in spec.deadlines.inputs if each.watermark_delay_s]
    delay_s = max(delays, default=0.0)
    # The last in the order of the data flow: its rows are the results.
    size_s = windows[-1].size_s if windows else NO_WINDOW_S
    slide_s = windows[-1].slide_s if windows else NO_WINDOW_S
    return SimulatedQuery(
        name=spec.name,
        traffic=Traffic(
            start_s=math.floor(recorded.from_s) - WARMUP_S,
            rate=f"{max(1.0, query.rows / recorded.seconds):g}",
            delays=f"uniform:0:{max(1, round(delay_s * 1e3))}ms",
            seed=number + 1,
        ),
        window_s=size_s,
        slide_s=slide_s,
        phase_s=windows[-1].offset_s % slide_s if windows else 0.0,
        watermark_s=delay_s,
        costs=_scaled(costs, work),
        priority=spec.priority,
        max_wait_s=spec.max_wait_s,
        output_mode=spec.deadlines.output_mode,
        one_batch=spec.one_batch,
    )


def _scaled(costs: BatchCosts, work: float) -> BatchCosts:
    return replace(
        costs,
        fixed_s=costs.fixed_s * work,
        empty_s=costs.empty_s * work,
        per_row_s=costs.per_row_s * work,
    )


def _predict(
    recorded: Recording, queries: dict[str, RecordedQuery], policy: str, work: float
) -> Prediction:
    fleet = [
        _simulated(recorded, query, number, work) for number, query in enumerate(queries.values())
    ]
    machine = Machine(recorded.cores, recorded.slots)
    warmup_s = _warmup_s(queries)
    return predict(fleet, policy, machine, warmup_s=warmup_s, seconds=recorded.seconds)


def _warmup_s(queries: dict[str, RecordedQuery]) -> float:
    """Return how long it takes until every query has had a window."""
    windows = [window for each in queries.values() for window in each.spec.deadlines.closing]
    return max([WARMUP_S, *(window.size_s + WARMUP_S / 2 for window in windows)])


def _work(recorded: Recording, queries: dict[str, RecordedQuery]) -> float:
    """Find the part of a batch's duration that is its own work."""
    seen_s = recorded.mean_batch_s
    low, high = 0.1, 1.5
    assert seen_s is not None
    for _ in range(TRIES):
        middle = math.sqrt(low * high)
        found = _predict(recorded, queries, recorded.policy, middle)
        durations = np.concatenate([found.with_rows_s, found.without_rows_s])
        shown_s = float(durations.mean()) if len(durations) else 0.0
        low, high = (middle, high) if shown_s < seen_s else (low, middle)
    return math.sqrt(low * high)


def _recorded(recorded: Recording, queries: dict[str, RecordedQuery]) -> dict[str, Any]:
    latencies = [value for query in queries.values() for value in query.latencies_s]
    batches = sum(len(query.batches) for query in queries.values())
    return _row(f"{recorded.policy}, as recorded", len(queries), latencies, batches)


def _row(name: str, queries: int, latencies_s: list[float], batches: int) -> dict[str, Any]:
    return {
        "policy": name,
        "repeat": 0,
        "queries": queries,
        "latencies_s": latencies_s,
        "batches": batches,
    }
