"""Seeded event traffic: how many events happen, how late they arrive, and exactly when.

Everything is a function of the seed and the time asked for, so that a stream can be replayed
from any point, by any process, and its true results can be computed beside it.
"""

from slackwater.traffic.delays import (
    ConstantDelays,
    Delays,
    ExponentialDelays,
    GammaDelays,
    UniformDelays,
    ZipfDelays,
    parse_delays,
)
from slackwater.traffic.gaps import EvenGaps, GammaGaps, Gaps, parse_gaps
from slackwater.traffic.randomness import BLOCK, block_generator, gather
from slackwater.traffic.rates import Rate, parse_rate
from slackwater.traffic.spec import Traffic
from slackwater.traffic.timeline import NEVER_US, Arrivals, Reach, Timeline

__all__ = [
    "BLOCK",
    "NEVER_US",
    "Arrivals",
    "ConstantDelays",
    "Delays",
    "EvenGaps",
    "ExponentialDelays",
    "GammaDelays",
    "GammaGaps",
    "Gaps",
    "Rate",
    "Reach",
    "Timeline",
    "Traffic",
    "UniformDelays",
    "ZipfDelays",
    "block_generator",
    "gather",
    "parse_delays",
    "parse_gaps",
    "parse_rate",
]
