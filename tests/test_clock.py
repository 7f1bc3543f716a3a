"""Time comes from the clock: nobody else asks the operating system for it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import slackwater

SOURCES = Path(slackwater.__file__).parent.parent
ASKING = frozenset(
    {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep"}
)
# Sources run in processes that Spark starts: nobody can hand them a clock.
EXCEPTIONS = {
    "slackwater/core/clock.py": "is the clock",
    "slackwater/engines/spark/sources/base.py": "runs in Spark's Python processes",
    "slackwater/engines/spark/sources/directives.py": "runs in Spark's Python processes",
    "slackwater/engines/spark/sources/feed.py": "the default of an option of Spark's",
    "slackwater/engines/spark/sources/log/log.py": "runs in Spark's Python processes",
    "slackwater/engines/spark/sources/log/segment_log.py": "runs in Spark's Python processes",
    "slackwater/engines/spark/sources/process.py": "runs in Spark's Python processes",
    "slackwater/engines/spark/sources/row_limits.py": "runs in Spark's Python processes",
}


def calls(source: str) -> Iterator[int]:
    """Yield the lines that call a function of ``time``, or import one by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            if any(alias.name in ASKING for alias in node.names):
                yield node.lineno
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "time"
            and node.attr in ASKING
        ):
            yield node.lineno


def asking() -> dict[str, list[int]]:
    found = {
        path.relative_to(SOURCES).as_posix(): sorted(calls(path.read_text()))
        for package in ("slackwater", "slackwater_bench")
        for path in (SOURCES / package).rglob("*.py")
    }
    return {name: lines for name, lines in found.items() if lines}


def test_only_the_clock_asks_the_system_for_the_time() -> None:
    strangers = [name for name in asking() if not name.startswith(tuple(EXCEPTIONS))]
    assert not strangers, "take a core.protocols.Clock, or core.clock.Deadline or Timer"


def test_exceptions_are_no_longer_than_needed() -> None:
    found = asking()
    for start in EXCEPTIONS:
        assert any(name.startswith(start) for name in found), f"{start} asks no more"


@pytest.mark.parametrize("text", ["time.sleep(1)", "from time import monotonic", "f = time.time"])
def test_it_would_be_seen(text: str) -> None:
    assert list(calls(text)) == [1]
