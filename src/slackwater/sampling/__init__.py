"""Results within a stated error, from a part of the rows and without waiting for stragglers.

Samplers, one a file, plan from what a :class:`Monitor` knows. A source follows the plan and keeps a
:class:`Ledger` of it in its offsets; :mod:`slackwater.sampling.estimates` makes results of what it
hands out.

>>> names()
['aion', 'aion-minus', 'aq-k-slack', 'k-slack']
"""

from slackwater.common.plugins import Family
from slackwater.sampling.base import Sampler
from slackwater.sampling.grid import Grid
from slackwater.sampling.ledger import Ledger
from slackwater.sampling.monitor import Monitor
from slackwater.sampling.plan import CellPlan, Plan
from slackwater.sampling.promise import Promise

__all__ = ["CellPlan", "Grid", "Ledger", "Monitor", "Plan", "Promise", "Sampler", "load", "names"]

_family: Family[Sampler] = Family(__name__, Sampler, "sampler")  # type: ignore[type-abstract]
names, load = _family.names, _family.load
