"""Kept and broken promises."""

from dataclasses import replace

from slackwater.core import Deadlines, InputStream, QuerySpec, Window
from slackwater.metrics.promises import PromiseObserver
from slackwater.metrics.results import WindowResult

DEADLINES = Deadlines((Window("tumbling", 3, 3),), (InputStream("ads", "at", 0.5),))


def test_windows_are_judged_by_their_latency() -> None:
    observer = PromiseObserver()
    results = [WindowResult(3.0, 0.9), WindowResult(6.0, 1.0), WindowResult(9.0, 1.1)]
    spec = QuerySpec("q", deadlines=DEADLINES, target_s=1.0)
    observer.update(spec, results, looked_s=0.0, began_s=59.0, done_s=60.0)
    assert (observer.kept, observer.broken) == (2, 1)


def test_without_a_target_nothing_is_promised() -> None:
    observer = PromiseObserver()
    observer.update(
        QuerySpec("q"), [WindowResult(3.0, 0.9)], looked_s=0.0, began_s=59.0, done_s=60.0
    )
    assert (observer.kept, observer.broken) == (None, None)


def test_what_was_never_looked_at_before_has_no_known_age() -> None:
    observer = PromiseObserver()
    observer.update(QuerySpec("q", target_s=1.0), (), looked_s=None, began_s=59.0, done_s=60.0)
    assert (observer.kept, observer.broken) == (0, 0)


def test_a_trigger_promises_how_often_results_are_refreshed() -> None:
    for mode, deadlines in (("append", Deadlines()), ("update", DEADLINES)):
        observer = PromiseObserver()
        deadlines = replace(deadlines, output_mode=mode)
        spec = QuerySpec("q", deadlines=deadlines, trigger_s=2.0)
        # However long a batch takes, it is refreshed every two seconds; gates take a moment.
        observer.update(spec, (), looked_s=0.0, began_s=2.1, done_s=3.9)
        observer.update(spec, (), looked_s=2.1, began_s=6.0, done_s=6.5)
        assert (observer.kept, observer.broken) == (1, 1), mode


def test_a_trigger_promises_nothing_of_windows_that_come_out_once() -> None:
    observer = PromiseObserver()
    spec = QuerySpec("q", deadlines=DEADLINES, trigger_s=2.0)
    observer.update(spec, [WindowResult(3.0, 9.0)], looked_s=0.0, began_s=2.0, done_s=3.0)
    assert (observer.kept, observer.broken) == (None, None)


def test_a_target_goes_before_the_trigger() -> None:
    observer = PromiseObserver()
    spec = QuerySpec("q", target_s=1.0, trigger_s=60.0)
    observer.update(spec, (), looked_s=0.0, began_s=1.0, done_s=1.5)
    assert (observer.kept, observer.broken) == (0, 1)
