"""Carries settings out, and takes them back."""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from slackwater.core.threads import Thread, find_thread, threads_of
from slackwater.enforce.groups import DEFAULT_SHARES, Groups
from slackwater.enforce.journal import Entry, Journal, thread_entry, thread_of
from slackwater.enforce.settings import (
    GroupQuota,
    GroupShare,
    Member,
    Nice,
    Scheduling,
    Setting,
    describe,
)

_TICKS = os.sysconf("SC_CLK_TCK")
_POLICY = {"other": os.SCHED_OTHER, "round-robin": os.SCHED_RR | os.SCHED_RESET_ON_FORK}

Target = tuple[str, Thread | str]  # what kind of setting, of whom


class Hand:
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
        self._nested: set[int] = set()

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
        left = self._owners.get(owner, set()) - wanted.keys()
        for target in left - self._of_others(owner):
            self._put_back(target)
        self._owners[owner] = set(wanted)
        return changed

    def release(self, owner: str) -> None:
        """Put back all that ``owner`` set."""
        self.apply(owner, ())
        self._owners.pop(owner, None)

    def restore(self) -> int:
        """Put everything back that the journal knows, also what an earlier process left."""
        entries = list(self.journal.entries.values())
        order = {"scheduling": 0, "nice": 1, "process": 2, "place": 3, "group": 4}
        # Deeper groups first; a group goes after the threads in it.
        entries.sort(key=lambda e: (order.get(e["kind"], 5), -len(e.get("path", ""))))
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
            if isinstance(setting, Nice | Scheduling | Member) and not setting.thread.alive:
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
                if self.journal.entry_of("nice", thread) is None:
                    before = os.getpriority(os.PRIO_PROCESS, thread.tid)
                    self._note_process(thread)
                    self.journal.record(thread_entry("nice", thread, value=before))
                os.setpriority(os.PRIO_PROCESS, thread.tid, value)
            case Scheduling(thread, scheduler, priority):
                policy = os.sched_getscheduler(thread.tid)
                was = os.sched_getparam(thread.tid).sched_priority
                entry = thread_entry("scheduling", thread, policy=policy, priority=was)
                self.journal.record(entry)
                os.sched_setscheduler(thread.tid, _POLICY[scheduler], os.sched_param(priority))
            case GroupShare(group, shares):
                self._make(group).set_shares(group, shares)
            case GroupQuota(group, cpus):
                self._make(group).set_quota(group, cpus)
            case Member(thread, group):
                groups = self._make(group)
                self._nest(groups, thread.pid)
                groups.add(thread, group)

    def _note_process(self, thread: Thread) -> None:
        """Threads that it starts from now on inherit what was set: restoring looks for them."""
        main = find_thread(thread.pid)
        if main is None:
            raise ProcessLookupError
        ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)
        base = os.getpriority(os.PRIO_PROCESS, main.tid)
        self.journal.record(thread_entry("process", main, nice=base, since=ticks))

    def _make(self, group: str) -> Groups:
        groups = self.groups
        assert groups is not None, "a translator that groups was let in without groups"
        for name in dict.fromkeys(("", group)):
            self.journal.record({"kind": "group", "path": str(groups.path(name))})
            groups.make(name)
        return groups

    def _nest(self, groups: Groups, pid: int) -> None:
        for thread in () if pid in self._nested else threads_of(pid):
            place = groups.place_of(thread)
            if place is not None:
                self.journal.record(thread_entry("place", thread, path=place))
        if pid not in self._nested:
            groups.nest(pid)
            self._nested.add(pid)
            # Against the rest of the machine as heavy as that many processes.
            groups.set_shares("", min(262144, DEFAULT_SHARES * len(self._nested)))

    def _of_others(self, owner: str) -> set[Target]:
        return set().union(*(held for name, held in self._owners.items() if name != owner))

    def _put_back(self, target: Target) -> None:
        setting = self._set.pop(target, None)
        kinds = {Nice: "nice", Scheduling: "scheduling"}
        match setting:
            case Nice(thread) | Scheduling(thread):
                entry = self.journal.entry_of(kinds[type(setting)], thread)
                if entry is not None:
                    self._undo(entry)
            case Member(thread) if self.groups is not None and thread.alive:
                with suppress(OSError):
                    self.groups.add(thread, "")  # beside the groups; out of ours at the end
            case GroupShare(group) | GroupQuota(group) if self.groups is not None:
                if self.groups.remove(self.groups.path(group)):
                    self.journal.forget({"kind": "group", "path": str(self.groups.path(group))})

    def _undo(self, entry: Entry) -> bool:
        """Put one thing back; what cannot be put back stays in the journal, unless it has gone."""
        try:
            self._undo_now(entry)
        except ProcessLookupError:
            pass
        except OSError as error:
            if entry["kind"] == "group" or thread_of(entry) is not None:
                self._complain(f"could not put back {entry}: {error.strerror}")
                return False
        self.journal.forget(entry)
        return True

    def _undo_now(self, entry: Entry) -> None:
        if entry["kind"] == "group":
            folder = Path(entry["path"])
            if self.groups is not None and not self.groups.remove(folder):
                raise OSError(0, "still in use")
            return
        thread = thread_of(entry)
        if thread is None:
            return
        match entry["kind"]:
            case "nice":
                os.setpriority(os.PRIO_PROCESS, thread.tid, entry["value"])
            case "scheduling":
                os.sched_setscheduler(
                    thread.tid, entry["policy"], os.sched_param(entry["priority"])
                )
            case "process":
                self._undo_inherited(thread, entry)
            case "place" if self.groups is not None:
                self.groups.put_back(thread, entry["path"])

    def _undo_inherited(self, main: Thread, entry: Entry) -> None:
        for thread in threads_of(main.pid):
            if thread.started < entry["since"]:
                continue
            try:
                if os.getpriority(os.PRIO_PROCESS, thread.tid) != entry["nice"]:
                    os.setpriority(os.PRIO_PROCESS, thread.tid, entry["nice"])
            except ProcessLookupError:
                continue


def _target(setting: Setting) -> Target:
    match setting:
        case Nice(thread) | Scheduling(thread) | Member(thread):
            return type(setting).__name__, thread
        case GroupShare(group) | GroupQuota(group):
            return type(setting).__name__, group
