"""The least latency that a window could have had."""

from slackwater.traffic import Timeline
from slackwater_bench.workloads.base import Workload

_FIRST_LOOK_US = 50_000
_LAST_LOOK_US = 600_000_000  # without an event for ten minutes there is none to wait for


def first_arrival_us(timeline: Timeline, event_us: int) -> int | None:
    """Find when the first event that happened at ``event_us`` or later arrives; ``None``: never.

    That is not the first to happen: a later one may have had a shorter way.

    >>> from slackwater.traffic import Traffic
    >>> timeline = Traffic(start_s=0, rate="10", delays="constant:150ms").timeline()
    >>> first_arrival_us(timeline, 1_010_000)
    1250000
    """
    look_us = _FIRST_LOOK_US
    while look_us <= _LAST_LOOK_US:
        seen = timeline.arrived(event_us - 1, event_us + look_us)
        past = seen.arrival_us[seen.event_us >= event_us]
        if len(past):
            return int(past.min())
        look_us *= 2
    return None


class Ideal:
    """Least latency of each window of one workload, given what its batches took.

    A window needs the sweep, which reads the first event past the window's end and the watermark's
    delay, and the emit, which is the same batch or the one after. Neither can begin before that
    event has arrived.

    >>> from slackwater.traffic import Traffic
    >>> from slackwater_bench.workloads.ysb import Ysb
    >>> ysb = Ysb(traffic=Traffic(start_s=0, rate="10", delays="constant:150ms"))
    >>> Ideal(ysb).latency_s(3_000_000, work_s=0.4)
    0.75
    """

    def __init__(self, workload: Workload) -> None:
        self._timeline = workload.traffic.timeline()
        self._delay_us = 1000 * workload.watermark_ms

    def latency_s(self, end_us: int, work_s: float) -> float | None:
        """Return the time from the window's end to its result, had nothing waited."""
        arrival_us = first_arrival_us(self._timeline, end_us + self._delay_us)
        return None if arrival_us is None else round((arrival_us - end_us) / 1e6 + work_s, 6)
