"""Control groups with a CPU controller, of either version, behind one interface.

All groups are made below one of ours, and a process whose threads are grouped is nested there as a
whole: the threads that no policy speaks of (garbage collection, compilation) then stand beside the
groups with the weight that any thread has, instead of outside with all the machine's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from slackwater.common.procfs import thread_folder, threads_of
from slackwater.core.clock import Deadline
from slackwater.core.entities import Thread
from slackwater.core.errors import SlackwaterError, UsageError

DEFAULT_SHARES = 1024
PERIOD_US = 100_000
REMOVAL_LIMIT_S, REMOVAL_PAUSE_S = 1.0, 0.05  # in all, and between two attempts


class Groups(ABC):
    """Groups of threads below one of our own.

    Parameters
    ----------
    mount
        Where the hierarchy is mounted.
    base
        The group below which ours is made, from the mount on; ``/`` is the whole machine's.
    name
        Of ours.
    """

    version: int
    threads_file: str  # takes single threads

    def __init__(self, mount: Path, name: str, base: str = "/") -> None:
        self.mount = mount
        self.root = mount / base.lstrip("/") / name

    def path(self, group: str) -> Path:
        return self.root / group if group else self.root

    def holds(self, place: str) -> bool:
        """Tell whether a place is ours or below ours."""
        return (self.mount / place.lstrip("/")).is_relative_to(self.root)

    @abstractmethod
    def make(self, group: str) -> None:
        """Make a group below ours, or with an empty name ours itself."""

    @abstractmethod
    def set_shares(self, group: str, shares: int) -> None:
        """Set the weight against sisters, in shares of version 1."""

    @abstractmethod
    def set_quota(self, group: str, cpus: float | None) -> None:
        """Set how many CPUs it may use at most."""

    @abstractmethod
    def nest(self, pid: int) -> None:
        """Take all threads of a process that are not below ours yet into ours."""

    def add(self, thread: Thread, group: str) -> None:
        """Put a thread into a group."""
        self.put(thread.tid, self.path(group))

    def put(self, tid: int, folder: Path) -> None:
        _write(folder / self.threads_file, str(tid))

    @abstractmethod
    def place_of(self, thread: Thread) -> str | None:
        """Return the thread's group, from the mount on; ``None`` when it has gone."""

    def put_back(self, thread: Thread, place: str) -> None:
        """Put a thread into the group it came from; where that has gone, into the one above."""
        folder = self.mount / place.lstrip("/")
        while not folder.is_dir() and folder != self.mount:
            folder = folder.parent
        self.put(thread.tid, folder)

    def remove(self, folder: Path) -> bool:
        """Remove a group of ours; threads that are still in it go to the one above.

        Threads in it may start others while they are moved, and one that has ended stays for a
        moment: it is tried again for a while.
        """
        deadline = Deadline(REMOVAL_LIMIT_S)
        return deadline.wait_for(lambda: self._removed(folder), REMOVAL_PAUSE_S)

    def _removed(self, folder: Path) -> bool:
        try:
            left = (folder / self.threads_file).read_text().split()
        except OSError:
            return not folder.is_dir()
        for tid in left:
            try:
                self._lift(int(tid), folder)
            except OSError:
                continue  # it has ended meanwhile
        try:
            folder.rmdir()
        except OSError:
            return False
        return True

    def _lift(self, tid: int, folder: Path) -> None:
        """Lift a thread into the group above."""
        self.put(tid, folder.parent)


class GroupsV1(Groups):
    """The ``cpu`` hierarchy of version 1: takes single threads anywhere."""

    version = 1
    threads_file = "tasks"

    def make(self, group: str) -> None:
        self.path(group).mkdir(exist_ok=True)

    def set_shares(self, group: str, shares: int) -> None:
        _write(self.path(group) / "cpu.shares", str(shares))

    def set_quota(self, group: str, cpus: float | None) -> None:
        quota = -1 if cpus is None else max(1000, round(cpus * PERIOD_US))
        _write(self.path(group) / "cpu.cfs_quota_us", str(quota))

    def nest(self, pid: int) -> None:
        for thread in threads_of(pid):
            place = self.place_of(thread)
            if place is not None and not self.holds(place):
                try:
                    self.put(thread.tid, self.root)
                except ProcessLookupError:
                    continue

    def place_of(self, thread: Thread) -> str | None:
        return _place(thread, lambda controllers: "cpu" in controllers.split(","))


class GroupsV2(Groups):
    """Version 2: a process is one domain; below it threads are told apart in threaded groups."""

    version = 2
    threads_file = "cgroup.threads"

    def make(self, group: str) -> None:
        folder = self.path(group)
        if folder.is_dir():
            return
        _write(folder.parent / "cgroup.subtree_control", "+cpu")
        folder.mkdir()
        if group:
            _write(folder / "cgroup.type", "threaded")

    def set_shares(self, group: str, shares: int) -> None:
        weight = round(100 * shares / DEFAULT_SHARES)  # 100 is the default of version 2
        _write(self.path(group) / "cpu.weight", str(min(10000, max(1, weight))))

    def set_quota(self, group: str, cpus: float | None) -> None:
        quota = "max" if cpus is None else str(max(1000, round(cpus * PERIOD_US)))
        _write(self.path(group) / "cpu.max", f"{quota} {PERIOD_US}")

    def nest(self, pid: int) -> None:
        main = next(iter(threads_of(pid)), None)
        place = None if main is None else self.place_of(main)
        if place is not None and not self.holds(place):
            _write(self.root / "cgroup.procs", str(pid))

    def put_back(self, thread: Thread, place: str) -> None:
        """Put back a process as a whole: it leaves its domain, and its other threads follow it."""
        folder = self.mount / place.lstrip("/")
        while not folder.is_dir() and folder != self.mount:
            folder = folder.parent
        _write(folder / "cgroup.procs", str(thread.pid))

    def _lift(self, tid: int, folder: Path) -> None:
        """Lift a thread; out of ours only a whole process goes, because it leaves its domain."""
        if folder == self.root:
            _write(folder.parent / "cgroup.procs", str(tid))
        else:
            super()._lift(tid, folder)

    def place_of(self, thread: Thread) -> str | None:
        return _place(thread, lambda controllers: controllers == "")


def find_groups(name: str, base: str = "/", mounts: Path = Path("/proc/self/mounts")) -> Groups:
    """Find the hierarchy that has the CPU controller; its version is told by what is mounted."""
    for line in mounts.read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return GroupsV1(Path(folder), name, base)
        if kind == "cgroup2":
            mount = Path(folder)
            if "cpu" in (mount / "cgroup.controllers").read_text().split():
                return GroupsV2(mount, name, base)
    raise UsageError(
        "no control groups with a CPU controller are mounted here; use the translator nice"
    )


def check_writable(groups: Groups) -> None:
    """Make our group and see."""
    try:
        groups.make("")
    except OSError as error:
        raise SlackwaterError(
            f"may not make control groups in {groups.root.parent} ({error.strerror}): run as root, "
            "or have a group delegated (systemd-run --user -p Delegate=cpu …) and name it as "
            "cgroup in the file"
        ) from error


def _place(thread: Thread, has_cpu: Callable[[str], bool]) -> str | None:
    try:
        lines = (thread_folder(thread) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, place = line.split(":", 2)
        if has_cpu(controllers):
            return place
    return None


def _write(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
