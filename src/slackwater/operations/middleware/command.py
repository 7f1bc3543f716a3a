"""What ``slackwater middleware`` does."""

import signal
import threading
from collections.abc import Callable
from typing import Any

from slackwater.common.subprocesses import collect_seldom
from slackwater.core.clock import Deadline
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.enforce.applier import Applier
from slackwater.enforce.groups import find_groups
from slackwater.enforce.journal import Journal, MadeGroup, Place
from slackwater.enforce.settings import describe
from slackwater.ipc import client
from slackwater.ipc.questions import Ask, AskStatus, Question, Switch
from slackwater.operations.middleware.control import Control, folder
from slackwater.operations.middleware.file import MiddlewareFile
from slackwater.operations.middleware.loop import Middleware

Say = Callable[[str], None]


def run(file: MiddlewareFile, say: Say, seconds: float | None = None) -> dict[str, Any]:
    """Run until a signal or ``seconds``, put everything back, and return the last status."""
    journal = Journal(folder() / f"{file.name}.journal")
    stop = threading.Event()
    middleware = Middleware(file, journal, say)
    control = Control(folder() / f"{file.name}.sock", lambda message: _answer(middleware, message))
    deadline = Deadline(seconds)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    collect_seldom()
    try:
        say(f"running {', '.join(task.name for task in middleware.tasks)}; Ctrl-C stops")
        middleware.run(lambda: stop.is_set() or deadline.passed, stop.wait)
    finally:
        control.close()
        middleware.close()
        journal.close()
    return middleware.status()


def dry_run(file: MiddlewareFile, say: Say, seconds: float = 2.0) -> dict[str, Any]:
    """Say the plan of every policy, after so long (rates need two readings); the status then."""
    journal = Journal(folder() / f"{file.name}-dry-run.journal")
    middleware = Middleware(file, journal, say, dry_run=True)
    deadline = Deadline(seconds)
    middleware.run(lambda: deadline.passed)
    for task in middleware.tasks:
        settings = middleware.plans.get(task.name, [])
        state = "active" if task.active else "not active"
        say(f"{task.name} ({state}): {len(settings)} settings")
        for setting in settings:
            say(f"  {describe(setting)}")
    middleware.close()
    journal.close()
    return middleware.status()


def restore(name: str | None, say: Say) -> int:
    """Put back what killed middlewares left; how many journals there were."""
    journals = sorted(folder().glob("*.journal"))
    chosen = [path for path in journals if name is None or path.stem == name]
    if name is not None and not chosen:
        raise UsageError(f"no middleware named {name!r} has left anything")
    left, done = 0, 0
    for path in chosen:
        try:
            journal = Journal(path)
        except UsageError as error:
            if name is not None:
                raise
            say(str(error))  # of one that runs: it puts everything back itself
            continue
        grouped = any(isinstance(each, MadeGroup | Place) for each in journal.entries.values())
        groups = find_groups(f"slackwater-{path.stem}") if grouped else None
        restored = Applier(journal, groups, say).restore()
        left += len(journal.entries)
        journal.close()
        done += 1
        say(f"{path.stem}: put back {restored} settings")
    if left:
        raise SlackwaterError(f"{left} settings could not be put back; the journals keep them")
    if chosen and not done:
        raise SlackwaterError("nothing was put back: the middlewares that hold it are running")
    return done


def only_one() -> str:
    """Return the name of the middleware that runs."""
    names = [path.stem for path in sorted(folder().glob("*.sock")) if client.answers(path)]
    if not names:
        raise UsageError("no middleware is running")
    if len(names) > 1:
        raise UsageError(f"running middlewares: {', '.join(names)}; give the file of one")
    return names[0]


def ask(name: str, question: AskStatus | Switch) -> dict[str, Any]:
    """Put a question to a running middleware; return its status."""
    path = folder() / f"{name}.sock"
    if not path.exists():
        raise UsageError(f"no middleware named {name!r} is running")
    return client.ask(path, question, dict[str, Any])


def _answer(middleware: Middleware, question: Question | Ask) -> dict[str, Any]:
    if isinstance(question, Switch):
        middleware.switch(question.policy, question.on)
    return middleware.status()
