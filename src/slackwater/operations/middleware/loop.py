"""The loop: collect → decide → enforce, for each policy in its own period."""

from collections.abc import Callable, Sequence
from typing import Any

from slackwater.common.procfs import process_cpu_s
from slackwater.core.clock import RealClock, Timer
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.protocols import Clock
from slackwater.enforce.applier import Applier
from slackwater.enforce.groups import Groups, check_writable, find_groups
from slackwater.enforce.journal import Journal, MadeGroup, Place
from slackwater.enforce.rights import autogroup_warning, lacking_nice, lacking_real_time
from slackwater.enforce.settings import GroupMember, Nice, Scheduling, Setting, describe
from slackwater.operations.middleware.engine import Engine
from slackwater.operations.middleware.file import MiddlewareFile
from slackwater.operations.middleware.task import PolicyTask

LONGEST_PAUSE_S = 0.5  # a policy that is switched is so soon
MOST_TOLD = 200  # settings of a policy in the status


class Middleware:
    """Runs the policies of a file until it is stopped, then puts everything back.

    Parameters
    ----------
    file
        What to do.
    journal
        Where originals are kept; what an earlier process left there is put back first.
    say
        Gets one line for everything that a person should know, once.
    dry_run
        Decide, but set nothing.
    clock
        Where time comes from.
    """

    def __init__(
        self,
        file: MiddlewareFile,
        journal: Journal,
        say: Callable[[str], None],
        dry_run: bool = False,
        clock: Clock = RealClock(),
    ) -> None:
        self._say_once: set[str] = set()
        self._say = say
        self.dry_run = dry_run
        self._clock = clock
        self.tasks = [PolicyTask(name, each, file.engines) for name, each in file.policies.items()]
        self.engines = {
            name: Engine(name, section, self._wanted(name), say, clock)
            for name, section in file.engines.items()
        }
        self.cycles = 0
        self.plans: dict[str, list[Setting]] = {}
        self._running = Timer(clock)
        self._cpu_before_s = process_cpu_s()
        self._may: dict[tuple[str, int], bool] = {}
        needs_groups = any("groups" in task.translator.needs for task in self.tasks)
        left = any(isinstance(each, MadeGroup | Place) for each in journal.entries.values())
        groups = self._groups(file) if needs_groups or left else None
        self.applier = Applier(journal, groups, self._once)
        if journal.entries and not dry_run:
            restored = self.applier.restore()
            say(f"put back {restored} settings that an earlier middleware left")
        if groups is not None and needs_groups and not dry_run:
            journal.record(MadeGroup(str(groups.root)))
            try:
                check_writable(groups)
            except SlackwaterError as error:
                self._without_groups(str(error))

    def step(self, now_s: float) -> int:
        """Run the policies that are due; how many settings were changed."""
        due = [task for task in self.tasks if task.due(now_s)]
        if not due:
            return 0
        self.cycles += 1
        return sum(self._run(task, now_s) for task in due)

    def run(self, stop: Callable[[], bool], pause: Callable[[float], object] | None = None) -> None:
        """Step until ``stop()`` holds; sleep, or ``pause``, until the next policy is due."""
        while not stop():
            self.step(self._clock.now())
            left_s = min(task.due_s for task in self.tasks) - self._clock.now()
            (pause or self._clock.sleep)(min(max(0.0, left_s), LONGEST_PAUSE_S))

    def switch(self, name: str, on: bool | None) -> None:
        """Turn a policy on or off by hand; ``None`` leaves it to the file again."""
        for task in self.tasks:
            if task.name == name:
                task.by_hand, task.due_s = on, 0.0
                return
        known = ", ".join(task.name for task in self.tasks)
        raise UsageError(f"no policy named {name!r}; these are: {known}")

    def close(self) -> None:
        """Put everything back."""
        if not self.dry_run:
            self.applier.restore()
        for engine in self.engines.values():
            engine.driver.close()

    def status(self) -> dict[str, Any]:
        """Return what there is to know, for ``--status``."""
        return {
            "cycles": self.cycles,
            "cpu_share": self.cpu_share(),
            "engines": {name: engine.status() for name, engine in self.engines.items()},
            "policies": {
                task.name: {
                    "active": task.active,
                    "switched": task.by_hand,
                    "settings": len(self.plans.get(task.name, ())),
                    "plan": [describe(s) for s in self.plans.get(task.name, ())[:MOST_TOLD]],
                }
                for task in self.tasks
            },
        }

    def cpu_share(self) -> float:
        """Return CPU time of this process since it began, as a share of one CPU."""
        passed_s = self._running.elapsed_s
        return (process_cpu_s() - self._cpu_before_s) / passed_s if passed_s > 0 else 0.0

    def _run(self, task: PolicyTask, now_s: float) -> int:
        engines = [self.engines[name] for name in task.engines]
        present = [engine for engine in engines if engine.read(now_s)]
        try:
            settings = self._plan(task, present, now_s)
        except Exception as error:  # of a policy of the user's, say: the others go on
            self._once(f"{task.name} sets nothing: {type(error).__name__}: {error}")
            settings = []
        self.plans[task.name] = settings
        return 0 if self.dry_run else self.applier.apply(task.name, settings)

    def _plan(self, task: PolicyTask, present: Sequence[Engine], now_s: float) -> list[Setting]:
        unknown = task.unknown_operators(present)
        if unknown is not None:
            self._once(unknown)
        task.active = task.wants_to_act(present)
        settings = task.plan(present, now_s) if task.active else []
        return self._allowed(task, present, settings) if settings else []

    def _allowed(
        self, task: PolicyTask, engines: Sequence[Engine], settings: list[Setting]
    ) -> list[Setting]:
        """Leave out what this process has no right to do, and say so once."""
        pids = {pid for engine in engines for pid in engine.driver.pids()}
        if task.translator.needs == {"nice"}:
            warning = autogroup_warning(pids)
            if warning is not None:
                self._once(warning)
        if "groups" in task.translator.needs and self.applier.groups is None and not self.dry_run:
            return []
        return [setting for setting in settings if self._may_set(setting)]

    def _may_set(self, setting: Setting) -> bool:
        match setting:
            case Nice(thread):
                return self._may_do("nice", thread.pid)
            case Scheduling(thread):
                return self._may_do("real-time", thread.pid)
            case GroupMember(thread):
                return thread.pid > 0
        return True

    def _may_do(self, what: str, pid: int) -> bool:
        if (what, pid) not in self._may:
            obstacle = lacking_nice(pid) if what == "nice" else lacking_real_time(pid)
            self._may[what, pid] = obstacle is None
            if obstacle is not None:
                self._once(obstacle)
        return self._may[what, pid]

    def _groups(self, file: MiddlewareFile) -> Groups | None:
        try:
            return find_groups(f"slackwater-{file.name}", file.cgroup)
        except SlackwaterError as error:
            self._once(str(error))
            return None

    def _without_groups(self, reason: str) -> None:
        self.applier.groups = None
        self._once(reason)

    def _wanted(self, engine: str) -> list[str]:
        return [m for task in self.tasks if engine in task.engines for m in task.metrics]

    def _once(self, line: str) -> None:
        if line not in self._say_once:
            self._say_once.add(line)
            self._say(line)
