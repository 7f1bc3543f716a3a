"""Fixtures of the tests on Spark."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.queries.registry import Registry


@pytest.fixture
def make_fleet(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Fleet]]:
    """Makes fleets on the shared Spark, which are stopped when the test ends."""
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(Registry, "strict", True)
    made: list[Fleet] = []

    def make(policy: str = "fcfs", **options: object) -> Fleet:
        made.append(Fleet(spark, policy, name=f"f{len(made)}", **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for fleet in made:
        fleet.stop()
