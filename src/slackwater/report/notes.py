"""What a reader must know before trusting the figures."""

from slackwater.report.run import Run
from slackwater.report.runs import Runs
from slackwater.statistics.intervals import RUNS_ENOUGH


def notes(runs: Runs) -> list[str]:
    """Sentences, most serious first.

    Parameters
    ----------
    runs
        Of the result.

    >>> raw = {"policy": "a", "windows": {"expected": 9, "emitted": 7, "wrong": 0}}
    >>> notes(Runs({"queries": 2, "runs": [raw | {"latencies_s": [1.0] * 7}]}))[0]
    'a, 2 queries: 2 of 9 windows never came; its latencies look better than they are.'
    """
    if not runs.every:
        return ["The result holds no run."]
    found = []
    few = False
    for count in runs.counts:
        for policy in runs.policies:
            mine = runs.of(policy, count)
            found += [f"{policy}, {count} queries: {text}" for text in _troubles(mine)]
            few |= 0 < len(mine) < RUNS_ENOUGH
    if few:
        found.append(
            "Where a policy has fewer than three repeats, intervals come from stretches of its "
            "runs and do not show how much repeats differ."
        )
    return found


def _troubles(runs: list[Run]) -> list[str]:
    found = []
    if wrong := sum(run.wrong or 0 for run in runs):
        found.append(f"{wrong:.0f} windows differ from the ground truth.")
    expected = sum(run.expected or 0 for run in runs)
    emitted = sum(run.emitted or 0 for run in runs if run.expected is not None)
    if emitted < expected:
        found.append(
            f"{expected - emitted:.0f} of {expected:.0f} windows never came; its latencies look "
            "better than they are."
        )
    if late := sum(not run.drained for run in runs):
        found.append(f"{late} of {len(runs)} runs still had windows open at the time limit.")
    if empty := sum(not len(run.latencies_s) for run in runs):
        found.append(f"{empty} of {len(runs)} runs have no latencies.")
    return found
