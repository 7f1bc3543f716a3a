"""What each version of Spark can do, as the tests here find it, for the table in the docs.

``SLACKWATER_FEATURES=FILE`` writes it there: one entry a feature, ``yes``, ``failed``, or why the
version has not got it.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from slackwater.engines.spark.fleet import Fleet

_FOUND: dict[str, str] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    mark = item.get_closest_marker("feature")
    if mark is None or (report.when == "teardown" and not report.failed):
        return report
    if report.failed:
        _FOUND[mark.args[0]] = "failed"
    elif report.skipped:
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else "skipped"
        _FOUND.setdefault(mark.args[0], reason.removeprefix("Skipped: "))
    elif report.when == "call":
        _FOUND.setdefault(mark.args[0], "yes")
    return report


def pytest_sessionfinish() -> None:
    path = os.environ.get("SLACKWATER_FEATURES")
    if path and _FOUND:
        import pyspark

        Path(path).write_text(json.dumps({"spark": pyspark.__version__, "features": _FOUND}))


class Progress:
    """Every batch of a fleet's queries that Spark has reported."""

    def __init__(self, fleet: Fleet) -> None:
        self.batches: list[dict[str, Any]] = []
        fleet.on_progress(lambda name, progress: self.batches.append(progress))

    def rows(self) -> list[int]:
        """Return how many each batch with rows has read."""
        return [each["numInputRows"] for each in self.batches if each["numInputRows"]]


@pytest.fixture
def make_fleet(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Fleet, Progress]]]:
    """Makes fleets on the shared Spark, which are stopped when the test ends."""
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(tmp_path))
    made: list[Fleet] = []

    def make(policy: str, **options: Any) -> tuple[Fleet, Progress]:
        made.append(Fleet(spark, policy, name=f"v{len(made)}", **options))
        return made[-1], Progress(made[-1])

    yield make
    for fleet in made:
        fleet.stop()
