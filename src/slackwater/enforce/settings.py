"""What can be set: the vocabulary between translators, which plan, and the applier, which acts."""

from dataclasses import dataclass
from typing import Literal

from slackwater.core.entities import Thread

Scheduler = Literal["other", "round-robin"]


@dataclass(frozen=True, slots=True)
class Nice:
    """A thread's nice value: -20 (most) to 19 (least)."""

    thread: Thread
    value: int


@dataclass(frozen=True, slots=True)
class Scheduling:
    """A thread's scheduling class; the priority counts among real-time threads only."""

    thread: Thread
    scheduler: Scheduler
    priority: int = 0


@dataclass(frozen=True, slots=True)
class GroupShare:
    """CPU weight of a group of threads against its sisters; 1024 is the kernel's default."""

    group: str
    shares: int


@dataclass(frozen=True, slots=True)
class GroupQuota:
    """CPUs that a group may use at most, such as 0.5; ``None``: as many as there are."""

    group: str
    cpus: float | None


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A thread's place: in this group."""

    thread: Thread
    group: str


Setting = Nice | Scheduling | GroupShare | GroupQuota | GroupMember


def describe(setting: Setting) -> str:
    """Describe a setting in one line for people.

    >>> describe(Nice(Thread(10, 12, 0), -5))
    'thread 12 of process 10: nice -5'
    """
    match setting:
        case Nice(thread, value):
            return f"thread {thread.tid} of process {thread.pid}: nice {value}"
        case Scheduling(thread, scheduler, priority):
            return f"thread {thread.tid} of process {thread.pid}: {scheduler} {priority}"
        case GroupShare(group, shares):
            return f"group {group}: {shares} shares"
        case GroupQuota(group, cpus):
            return f"group {group}: " + ("no limit" if cpus is None else f"at most {cpus:g} CPUs")
        case GroupMember(thread, group):
            return f"thread {thread.tid} of process {thread.pid}: in group {group}"
