"""Policies: one a file, found by name; a user's own is named ``module:Class``.

A distribution registers its policies by name as entry points of the group ``slackwater.policies``.

A policy looks at a :class:`~slackwater.core.model.Snapshot` and answers with a
:class:`~slackwater.core.model.Schedule`. It never acts and never sees an engine.

>>> "fcfs" in names()
True
>>> load("fcfs").name
'fcfs'
"""

from slackwater.common.plugins import Family
from slackwater.policies.base import Policy

__all__ = ["Policy", "fitting", "load", "names"]

_family: Family[Policy] = Family(
    __name__,
    Policy,  # type: ignore[type-abstract]
    "policy",
    "slackwater.policies",
)
names, load, fitting = _family.names, _family.load, _family.fitting
