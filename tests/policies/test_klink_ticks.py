"""A source that delivers once a second, as Spark's rate source does."""

import math

from slackwater import policies
from slackwater.core import QuerySpec
from tests.policies.fleet_script import START, Scripted, run, windows

PHASE_S = 0.63


def last_tick_s(now_s: float) -> float:
    return math.floor(now_s - PHASE_S) + PHASE_S


def test_windows_are_swept_once_and_soon() -> None:
    query = Scripted(
        QuerySpec("ticking", deadlines=windows(3.0)),
        arrives=lambda since_s, now_s: last_tick_s(since_s) < last_tick_s(now_s),
        frontier_s=lambda now_s: last_tick_s(now_s) - 0.05,
        told={"batch_empty_s": 0.1},
    )
    run(policies.load("klink"), [query], 240)
    late = [at_s for at_s in query.looks_s if at_s > START + 120]
    assert len(late) < 2.6 * 40  # a sweep and an emit for each window
    # The first delivery after the window's end and the watermark's delay is 0.63 s after that end.
    sweeps = late[::2] if late[0] % 3.0 < late[1] % 3.0 else late[1::2]
    assert sum(at_s % 3.0 for at_s in sweeps) / len(sweeps) < PHASE_S + 0.25
