"""Engines that are only looked at, from outside: one driver a file.

A driver of your own is named ``module:Class``; docs/drivers.md says what it must do.
A distribution registers its drivers by name as entry points of the group ``slackwater.drivers``.

>>> names()
['flink', 'process', 'spark']
"""

from slackwater.common.plugins import Family
from slackwater.engines.outside.base import Driver

__all__ = ["Driver", "load", "names"]

_family: Family[Driver] = Family(
    __name__,
    Driver,  # type: ignore[type-abstract]
    "driver",
    "slackwater.drivers",
)
names, load = _family.names, _family.load
