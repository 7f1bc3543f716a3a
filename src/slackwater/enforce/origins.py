"""What threads and processes had before anything was set, also those that were born since.

A thread inherits the nice value of the one that starts it, and a process the control group of its
parent: what it has when it is first looked at may be ours. So each steered process is remembered
with what it had, and what is born of it counts as having had the same.
"""

import os
from collections.abc import Iterator

from slackwater.common.procfs import (
    all_processes,
    descendants,
    find_thread,
    read_stat,
    threads_of,
    ticks_since_boot,
)
from slackwater.core.entities import Thread
from slackwater.enforce.groups import Groups
from slackwater.enforce.journal import Home, Journal, KnownOfThread, NiceValue, Place, ProcessNice


class Origins:
    """Writes them to a journal, and reads them there."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def note_nice(self, thread: Thread) -> None:
        """Note the nice value of a thread before it is changed for the first time."""
        if self._journal.entry_of(NiceValue, thread) is not None:
            return
        main = _main_of(thread.pid)
        process = self._journal.entry_of(ProcessNice, main) or self._note_process(main)
        inherited = thread.started >= process.since
        value = process.nice if inherited else os.getpriority(os.PRIO_PROCESS, thread.tid)
        self._journal.record(NiceValue(*thread, value))

    def note_places(self, groups: Groups, pid: int) -> Thread:
        """Note where a process's threads are, and where it belongs, before it is nested."""
        main = _main_of(pid)
        for thread in threads_of(pid):
            place = groups.place_of(thread)
            if place is not None and not groups.holds(place):
                self._journal.record(Place(*thread, place))
        home = groups.place_of(main)
        if home is not None and groups.holds(home):
            parent = self._parent_entry(Home, main)
            home = None if parent is None else parent.path
        if home is not None:
            self._journal.record(Home(*main, home))
        return main

    def _note_process(self, main: Thread) -> ProcessNice:
        parent = self._parent_entry(ProcessNice, main)
        if parent is not None and main.started >= parent.since:
            nice, since = parent.nice, 0  # all of its threads have inherited
        else:
            nice = os.getpriority(os.PRIO_PROCESS, main.tid)
            since = ticks_since_boot()
        entry = ProcessNice(*main, nice, since)
        self._journal.record(entry)
        return entry

    def _parent_entry(self, kind: type[KnownOfThread], main: Thread) -> KnownOfThread | None:
        """Return the entry of the nearest process above it that has one."""
        stat = read_stat(main.pid)
        while stat is not None and stat.parent > 1:
            above = find_thread(stat.parent)
            entry = None if above is None else self._journal.entry_of(kind, above)
            if entry is not None:
                return entry
            stat = read_stat(stat.parent)
        return None


def undo_inherited(entry: ProcessNice) -> None:
    """Give threads that were born since, in the process or below it, what it had."""
    for thread in _below(entry.thread):
        if thread.started >= entry.since:
            try:
                if os.getpriority(os.PRIO_PROCESS, thread.tid) != entry.nice:
                    os.setpriority(os.PRIO_PROCESS, thread.tid, entry.nice)
            except ProcessLookupError:
                continue


def go_home(groups: Groups, entry: Home) -> None:
    """Let threads of the process, and below it, that are in groups of ours leave them."""
    for thread in _below(entry.thread):
        place = groups.place_of(thread)
        if place is not None and groups.holds(place):
            try:
                groups.put_back(thread, entry.path)
            except ProcessLookupError:
                continue


def _below(main: Thread) -> Iterator[Thread]:
    for pid in descendants(main.pid, all_processes()):
        yield from threads_of(pid)


def _main_of(pid: int) -> Thread:
    main = find_thread(pid)
    if main is None:
        raise ProcessLookupError
    return main
