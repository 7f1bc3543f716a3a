"""Traffic as a user writes it down: a few texts and numbers, checked at once."""

import math
from dataclasses import dataclass

from slackwater.core.errors import UsageError
from slackwater.traffic.delays import parse_delays
from slackwater.traffic.gaps import parse_gaps
from slackwater.traffic.rates import parse_rate
from slackwater.traffic.timeline import Timeline


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """One stream's traffic. Equal values give equal streams, on any machine and at any time.

    >>> Traffic(rate="10", delays="constant:150ms", start_s=0).timeline().count(400_000)
    3
    >>> Traffic(partitions=0, start_s=0)
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: traffic needs at least 1 partition, not 0
    """

    start_s: float  # first event time, seconds since the epoch
    stop_s: float | None = None  # no events from here on; None: no end
    rate: str = "1000"  # events per second, see ``parse_rate``
    delays: str = "uniform:0:300ms"  # network delays, see ``parse_delays``
    partitions: int = 1
    seed: int = 1
    gaps: str = "constant"  # how evenly events follow each other, see ``parse_gaps``

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise UsageError(f"traffic needs at least 1 partition, not {self.partitions}")
        if self.stop_s is not None and self.stop_s < self.start_s:
            raise UsageError(f"traffic stops at {self.stop_s} before it starts at {self.start_s}")
        parse_rate(self.rate)
        parse_delays(self.delays)
        parse_gaps(self.gaps)

    @property
    def max_delay_s(self) -> float:
        """The largest network delay."""
        return parse_delays(self.delays).max_s

    def watermark_ms(self, stated_s: float | None = None) -> int:
        """Return a watermark's delay: as stated, else the largest network delay: no row is lost.

        Upwards, because Spark keeps it in whole milliseconds.

        >>> Traffic(start_s=0).watermark_ms(), Traffic(start_s=0).watermark_ms(0.0101)
        (300, 11)
        """
        delay_s = self.max_delay_s if stated_s is None else stated_s
        return math.ceil(round(delay_s * 1e3, 3))

    def timeline(self) -> Timeline:
        """Make the events themselves."""
        return Timeline(
            parse_rate(self.rate),
            parse_delays(self.delays),
            seed=self.seed,
            start_us=round(self.start_s * 1e6),
            stop_us=None if self.stop_s is None else round(self.stop_s * 1e6),
            partitions=self.partitions,
            gaps=parse_gaps(self.gaps),
        )
