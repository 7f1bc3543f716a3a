"""Translators that put threads into groups."""

import re
from collections.abc import Callable, Sequence
from hashlib import sha1
from typing import Literal

from slackwater.core.errors import UsageError
from slackwater.enforce.settings import GroupMember, Setting
from slackwater.enforce.translators.base import Ranked

By = Literal["operator", "query"]
GroupPriority = Literal["highest", "sum", "equal"]

_COMBINE: dict[str, Callable[[list[float]], float]] = {
    "highest": max,
    "sum": sum,
    "equal": lambda _: 1.0,
}


def group_name(text: str) -> str:
    """Make a folder's name: short, of harmless characters, different for different texts.

    >>> group_name("flink/q1"), group_name("../x")
    ('flink@q1', '..@x-72e4d0')
    """
    harmless = re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", text, re.ASCII) and len(text) <= 60
    if harmless:
        return text.replace("/", "@")
    plain = re.sub(r"[^A-Za-z0-9._-]", "@", text)[:50]
    return f"{plain}-{sha1(text.encode(), usedforsecurity=False).hexdigest()[:6]}"


def check_by(by: str) -> None:
    if by not in ("operator", "query"):
        raise UsageError(f"by takes operator or query, not {by!r}")


def check_group_priority(value: str) -> None:
    if value not in _COMBINE:
        raise UsageError(f"groups takes {', '.join(_COMBINE)}, not {value!r}")


def groups_of(ranked: Sequence[Ranked], by: By, combine: GroupPriority) -> dict[str, float]:
    """Return the priority of each group."""
    found: dict[str, list[float]] = {}
    for each in ranked:
        found.setdefault(group_of(each, by), []).append(each.priority)
    return {group: _COMBINE[combine](values) for group, values in found.items()}


def group_of(ranked: Ranked, by: By) -> str:
    return group_name(ranked.query if by == "query" else ranked.name)


def members(ranked: Sequence[Ranked], by: By) -> list[Setting]:
    """Put every thread in its group."""
    return [
        GroupMember(thread, group_of(each, by))
        for each in ranked
        for thread in each.operator.threads
    ]
