"""Carries settings out, and takes them back."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from slackwater.common.procfs import is_alive
from slackwater.core.entities import Thread
from slackwater.enforce.groups import DEFAULT_SHARES, Groups
from slackwater.enforce.journal import (
    Entry,
    Home,
    Journal,
    MadeGroup,
    NiceValue,
    Place,
    ProcessNice,
    Scheduler,
    still_there,
)
from slackwater.enforce.origins import Origins, go_home, undo_inherited
from slackwater.enforce.settings import (
    GroupMember,
    GroupQuota,
    GroupShare,
    Nice,
    Scheduling,
    Setting,
    describe,
)

_ORDER = (Scheduler, NiceValue, ProcessNice, Place, Home, MadeGroup)  # of restoring
_POLICY = {"other": os.SCHED_OTHER, "round-robin": os.SCHED_RR | os.SCHED_RESET_ON_FORK}

Target = tuple[str, Thread | str]  # what kind of setting, of whom


class Applier:
    """The only one that changes anything outside this process.

    Parameters
    ----------
    journal
        Gets the original of everything before it is changed.
    groups
        Where groups are made; ``None`` where no translator needs them.
    complain
        Told what the kernel refused; once for each reason.
    """

    def __init__(
        self, journal: Journal, groups: Groups | None, complain: Callable[[str], None]
    ) -> None:
        self.journal = journal
        self.groups = groups
        self._complain = complain
        self._refused: set[str] = set()
        self._set: dict[Target, Setting] = {}
        self._owners: dict[str, set[Target]] = {}
        self._nested: dict[int, Thread] = {}
        self._origins = Origins(journal)

    def apply(self, owner: str, settings: Iterable[Setting]) -> int:
        """Make these the settings of ``owner`` (a policy); how many had to be changed.

        What it set earlier and does not name any more is put back.
        """
        wanted = {_target(setting): setting for setting in settings}
        changed = 0
        for target, setting in wanted.items():
            if self._set.get(target) != setting and self._carry_out(setting):
                self._set[target] = setting
                changed += 1
        left = self._owners.get(owner, set()) - wanted.keys() - self._of_others(owner)
        self._owners[owner] = set(wanted)
        for target in sorted(left, key=lambda each: isinstance(each[1], str)):  # groups last
            self._put_back(target)
        self._leave({thread.pid for _, thread in left if isinstance(thread, Thread)})
        return changed

    def release(self, owner: str) -> None:
        """Put back all that ``owner`` set."""
        self.apply(owner, ())
        self._owners.pop(owner, None)

    def restore(self) -> int:
        """Put everything back that the journal knows, also what an earlier process left."""
        entries = list(self.journal.entries.values())
        # Deeper groups first; a group goes after the threads in it.
        entries.sort(key=lambda entry: (_rank(entry), -len(getattr(entry, "path", ""))))
        restored = sum(self._undo(entry) for entry in entries)
        self._set.clear()
        self._owners.clear()
        self._nested.clear()
        self.journal.trim()
        return restored

    def _carry_out(self, setting: Setting) -> bool:
        try:
            self._act(setting)
        except ProcessLookupError:
            return False  # the thread has ended
        except OSError as error:
            if isinstance(setting, Nice | Scheduling | GroupMember) and not is_alive(
                setting.thread
            ):
                return False
            reason = f"{type(setting).__name__} {error.strerror}"
            if reason not in self._refused:
                self._refused.add(reason)
                self._complain(f"the kernel refused: {describe(setting)}: {error.strerror}")
            return False
        return True

    def _act(self, setting: Setting) -> None:
        match setting:
            case Nice(thread, value):
                self._origins.note_nice(thread)
                os.setpriority(os.PRIO_PROCESS, thread.tid, value)
            case Scheduling(thread, scheduler, priority):
                policy = os.sched_getscheduler(thread.tid)
                was = os.sched_getparam(thread.tid).sched_priority
                self.journal.record(Scheduler(*thread, policy, was))
                _schedule(thread, _POLICY[scheduler], priority)
            case GroupShare(group, shares):
                self._make(group).set_shares(group, shares)
            case GroupQuota(group, cpus):
                self._make(group).set_quota(group, cpus)
            case GroupMember(thread, group):
                groups = self._make(group)
                self._nest(groups, thread.pid)
                groups.add(thread, group)

    def _make(self, group: str) -> Groups:
        groups = self.groups
        assert groups is not None, "a translator that groups was let in without groups"
        for name in dict.fromkeys(("", group)):
            self.journal.record(MadeGroup(str(groups.path(name))))
            groups.make(name)
        return groups

    def _nest(self, groups: Groups, pid: int) -> None:
        if pid in self._nested and is_alive(self._nested[pid]):
            return
        main = self._origins.note_places(groups, pid)
        groups.nest(pid)
        self._nested = {p: each for p, each in self._nested.items() if is_alive(each)} | {pid: main}
        # Against the rest of the machine as heavy as that many processes.
        groups.set_shares("", min(262144, DEFAULT_SHARES * len(self._nested)))

    def _of_others(self, owner: str) -> set[Target]:
        return set().union(*(held for name, held in self._owners.items() if name != owner))

    def _put_back(self, target: Target) -> None:
        setting = self._set.pop(target, None)
        match setting:
            case Nice(thread):
                self._undo_if_known(self.journal.entry_of(NiceValue, thread))
            case Scheduling(thread):
                self._undo_if_known(self.journal.entry_of(Scheduler, thread))
            case GroupMember(thread) if self.groups is not None and is_alive(thread):
                with suppress(OSError):
                    self.groups.add(thread, "")  # beside the groups; out of ours with the last
            case GroupShare() | GroupQuota() if self.groups is not None:
                self._leave_group(self.groups, setting)

    def _leave_group(self, groups: Groups, setting: GroupShare | GroupQuota) -> None:
        """Leave a group; another policy may need it for something else."""
        group = setting.group
        if all(getattr(each, "group", None) != group for each in self._set.values()):
            if groups.remove(groups.path(group)):
                self.journal.forget(MadeGroup(str(groups.path(group))))
            return
        with suppress(OSError):
            if isinstance(setting, GroupShare):
                groups.set_shares(group, DEFAULT_SHARES)
            else:
                groups.set_quota(group, None)

    def _leave(self, pids: set[int]) -> None:
        """Leave processes of which nothing is set any more, with what was born meanwhile."""
        left = pids - {thread.pid for _, thread in self._set if isinstance(thread, Thread)}
        entries = self.journal.entries.values()
        wholes = [each for each in entries if isinstance(each, ProcessNice | Place | Home)]
        for entry in sorted((each for each in wholes if each.pid in left), key=_rank):
            self._undo(entry)
        for pid in left:
            self._nested.pop(pid, None)

    def _undo_if_known(self, entry: Entry | None) -> None:
        if entry is not None:
            self._undo(entry)

    def _undo(self, entry: Entry) -> bool:
        """Put one thing back; what cannot be put back stays in the journal, unless it has gone."""
        try:
            self._undo_now(entry)
        except ProcessLookupError:
            pass
        except OSError as error:
            if isinstance(entry, MadeGroup) or still_there(entry):
                self._complain(f"could not put back {entry}: {error.strerror}")
                return False
        self.journal.forget(entry)
        return True

    def _undo_now(self, entry: Entry) -> None:
        if isinstance(entry, MadeGroup):
            if self.groups is not None and not self.groups.remove(Path(entry.path)):
                raise OSError(0, "still in use")
            return
        if not still_there(entry):
            return
        match entry:
            case NiceValue(value=value):
                os.setpriority(os.PRIO_PROCESS, entry.tid, value)
            case Scheduler(policy=policy, priority=priority):
                _schedule(entry.thread, policy, priority)
            case ProcessNice():
                undo_inherited(entry)
            case Place(path=path) if self.groups is not None:
                self.groups.put_back(entry.thread, path)
            case Home() if self.groups is not None:
                go_home(self.groups, entry)


def _rank(entry: Entry) -> int:
    """Rank an entry by when it is put back."""
    return _ORDER.index(type(entry))


def _schedule(thread: Thread, policy: int, priority: int) -> None:
    """Set a scheduler.

    Without CAP_SYS_NICE the flag that keeps children out of it cannot be taken away again.
    """
    try:
        os.sched_setscheduler(thread.tid, policy, os.sched_param(priority))
    except PermissionError:
        kept = policy | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(thread.tid, kept, os.sched_param(priority))


def _target(setting: Setting) -> Target:
    match setting:
        case Nice(thread) | Scheduling(thread) | GroupMember(thread):
            return type(setting).__name__, thread
        case GroupShare(group) | GroupQuota(group):
            return type(setting).__name__, group
