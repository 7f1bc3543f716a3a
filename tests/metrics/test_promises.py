"""Kept and broken promises."""

from slackwater.core import Deadlines, InputStream, QuerySpec, Window
from slackwater.metrics.promises import PromiseObserver
from slackwater.metrics.results import WindowResult

DEADLINES = Deadlines((Window("tumbling", 3, 3),), (InputStream("ads", "at", 0.5),))


def test_windows_are_judged_by_their_latency() -> None:
    observer = PromiseObserver()
    results = [WindowResult(3.0, 0.9), WindowResult(6.0, 1.0), WindowResult(9.0, 1.1)]
    spec = QuerySpec("q", deadlines=DEADLINES, target_s=1.0)
    observer.update(spec, results, looked_s=0.0, done_s=60.0)
    assert (observer.kept, observer.broken) == (2, 1)


def test_without_a_target_nothing_is_promised() -> None:
    observer = PromiseObserver()
    observer.update(QuerySpec("q"), [WindowResult(3.0, 0.9)], looked_s=0.0, done_s=60.0)
    assert (observer.kept, observer.broken) == (None, None)


def test_what_was_never_looked_at_before_has_no_known_age() -> None:
    observer = PromiseObserver()
    observer.update(QuerySpec("q", target_s=1.0), (), looked_s=None, done_s=60.0)
    assert (observer.kept, observer.broken) == (0, 0)
