"""What is printed while a plan is read, without Spark."""

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from slackwater.engines.spark.plans.explained import discover_explained

PLAN = """== Analyzed Logical Plan ==
value: bigint
EventTimeWatermark 0f1e-a7, timestamp#0: timestamp, 1 minutes
+- StreamingRelationV2 org.Rate@1f, {name}, org.Table@2e, [timestamp#0, value#1L]
== Optimized Logical Plan =="""


class Frame:
    """A DataFrame that prints its plan after something else has happened."""

    def __init__(self, name: str, before: Callable[[], None]) -> None:
        self._name, self._before = name, before

    def explain(self, extended: bool) -> None:
        print(PLAN.partition("\n")[0])
        self._before()
        print(PLAN.format(name=self._name).partition("\n")[2])


def names(frame: Any) -> list[str]:
    return [each.name for each in discover_explained(frame).inputs]


def in_a_thread(act: Callable[[], None]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_other_threads_print_as_ever(capsys: pytest.CaptureFixture[str]) -> None:
    frame = Frame("rate", lambda: in_a_thread(lambda: print("batch 7 is written")))
    assert names(frame) == ["rate"]
    assert capsys.readouterr().out == "batch 7 is written\n"


def test_who_keeps_the_stream_prints_as_ever_afterwards(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept: list[Any] = []

    def keep() -> None:
        kept.append(sys.stdout)
        kept[0].flush()
        assert kept[0].encoding

    assert names(Frame("rate", keep)) == ["rate"]
    print("from a logger, say", file=kept[0])
    assert capsys.readouterr().out == "from a logger, say\n"


def test_two_plans_that_are_read_at_once_are_not_mixed() -> None:
    before, found = sys.stdout, {}
    together = threading.Barrier(2)

    def read(name: str) -> None:
        together.wait(30)
        found[name] = names(Frame(name, lambda: None))

    threads = [threading.Thread(target=read, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == {"a": ["a"], "b": ["b"]}
    assert sys.stdout is before


def test_output_is_as_before_after_an_error() -> None:
    def fail() -> None:
        raise ValueError("no plan")

    before = sys.stdout
    with pytest.raises(ValueError, match="no plan"):
        names(Frame("rate", fail))
    assert sys.stdout is before
