"""The vocabulary that every other package speaks, and the cycle that ties them together.

``model`` and ``windows`` are the nouns, ``protocols`` the four roles (driver, policy, enforcer,
clock), ``controller`` the cycle collect → decide → enforce. Imports nothing of ours.
"""

from slackwater.core.clock import RealClock, VirtualClock
from slackwater.core.controller import Controller
from slackwater.core.errors import EngineError, SlackwaterError, UsageError
from slackwater.core.model import (
    Admission,
    Decision,
    Figures,
    Memory,
    OperatorMetrics,
    QueryMetrics,
    QuerySpec,
    QueryState,
    Schedule,
    Snapshot,
)
from slackwater.core.windows import Deadlines, InputStream, Window

__all__ = [
    "Admission",
    "Controller",
    "Deadlines",
    "Decision",
    "EngineError",
    "Figures",
    "InputStream",
    "Memory",
    "OperatorMetrics",
    "QueryMetrics",
    "QuerySpec",
    "QueryState",
    "RealClock",
    "Schedule",
    "SlackwaterError",
    "Snapshot",
    "UsageError",
    "VirtualClock",
    "Window",
]
