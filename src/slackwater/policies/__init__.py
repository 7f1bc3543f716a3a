"""Policies: one a file, found by name; a user's own is named ``module:Class``.

A policy looks at a :class:`~slackwater.core.model.Snapshot` and answers with a
:class:`~slackwater.core.model.Schedule`. It never acts and never sees an engine.

>>> "fcfs" in names()
True
>>> load("fcfs").name
'fcfs'
"""

import pkgutil
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from slackwater.core.errors import UsageError
from slackwater.core.loading import load_object
from slackwater.policies.base import Policy

__all__ = ["Policy", "load", "names"]


def names() -> list[str]:
    """The policies that come with Slackwater."""
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return [m.replace("_", "-") for m in modules if m != "base" and not m.startswith("_")]


def load(name: str, **parameters: Any) -> Policy:
    """Make a policy from its name or from ``module:Class``; extra keys go to its constructor."""
    policy_class = load_object(name) if ":" in name else _by_name(name)
    if not (isinstance(policy_class, type) and issubclass(policy_class, Policy)):
        raise UsageError(f"{name} is not a policy: derive it from slackwater.policies.Policy")
    try:
        return policy_class(**parameters)
    except TypeError as error:
        raise UsageError(f"policy {name}: {error}") from error


def _by_name(name: str) -> type[Policy]:
    known = names()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"unknown policy {name!r}.{hint} Known: {', '.join(known)}, or your own as module:Class"
        )
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    found = [
        member
        for member in vars(module).values()
        if isinstance(member, type) and issubclass(member, Policy) and member.name == name
    ]
    return found[0]
