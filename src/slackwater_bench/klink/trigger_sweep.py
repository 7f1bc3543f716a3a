"""Which fixed trigger interval suits Spark best: short trials, before the measured ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from slackwater_bench.klink.trial import PolicyTrial

INTERVALS_S = (0.5, 1.0, 1.5, 2.0, 3.0)
SWEEP_S = 15.0  # measured time of one of them at most

# Far from the seeds of measured trials: an interval is not chosen on what it is judged by.
_SEED_STEP = 100_003


def sweep_trials(trial: PolicyTrial, queries: int) -> list[PolicyTrial]:
    """Return the trials of a sweep with so many queries.

    >>> [t.trigger_s for t in sweep_trials(PolicyTrial("spark"), queries=12)]
    [0.5, 1.0, 1.5, 2.0, 3.0]
    """
    short = replace(
        trial,
        queries=queries,
        seconds=min(trial.seconds, SWEEP_S),
        seed=trial.seed + _SEED_STEP,
    )
    return [replace(short, trigger_s=interval_s) for interval_s in INTERVALS_S]


def sweep_outcome(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a result keeps of one."""
    keys = ("latency_s", "windows", "batches", "cpu_s", "drained", "error")
    return {key: outcome[key] for key in keys if key in outcome}


def best_interval_s(entries: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the interval with the least mean latency; ``None`` if none ran.

    One that did not keep up shows only the windows that came, so it wins only if all are such.

    >>> late = {"trigger_s": 0.5, "drained": False, "latency_s": {"mean": 1.0}}
    >>> slow = {"trigger_s": 3.0, "drained": True, "latency_s": {"mean": 4.0}}
    >>> best_interval_s([late, slow, {"trigger_s": 1.0, "error": "the JVM died"}])
    3.0
    """
    ran = [e for e in entries if "error" not in e and e["latency_s"]["mean"] is not None]
    if not ran:
        return None
    best = min(ran, key=lambda entry: (not entry["drained"], entry["latency_s"]["mean"]))
    return float(best["trigger_s"])
