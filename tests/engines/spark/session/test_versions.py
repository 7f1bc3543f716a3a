"""What a version lacks is said in one line, and refused where it is asked for."""

from collections.abc import Mapping
from typing import Any

import pytest
from py4j.protocol import Py4JError

from slackwater.core.errors import UsageError
from slackwater.engines.spark.session import versions


class Jvm:
    """A JVM that has some classes."""

    def __init__(self, *classes: str) -> None:
        self._classes = classes
        self.java = self.lang = self.Class = self

    def forName(self, name: str) -> str:
        if name not in self._classes:
            raise Py4JError(f"ClassNotFoundException: {name}")
        return name


STREAMING = "org.apache.spark.sql.execution.streaming"


@pytest.mark.parametrize(
    ("classes", "package"),
    [
        ((f"{STREAMING}.MicroBatchExecution",), STREAMING),  # up to 4.0
        ((f"{STREAMING}.runtime.MicroBatchExecution",), f"{STREAMING}.runtime"),
        ((), f"{STREAMING}.runtime"),  # probes then say what is missing
    ],
)
def test_the_engine_s_package_is_looked_for(classes: tuple[str, ...], package: str) -> None:
    assert versions.engine_package(Jvm(*classes)) == package


@pytest.mark.parametrize(
    ("version", "package"),
    [("3.5.9", STREAMING), ("4.0.0", STREAMING), ("4.1.0", f"{STREAMING}.checkpointing")],
)
def test_the_checkpoint_manager_follows_from_the_version(version: str, package: str) -> None:
    found = versions.checkpoint_file_manager(version)
    assert found == f"{package}.FileSystemBasedCheckpointFileManager"


@pytest.mark.parametrize(("fields", "key"), [({"nodeId": "6c-1"}, "6c-1"), ({}, "2")])
def test_watermarks_without_an_id_are_counted(fields: Mapping[str, Any], key: str) -> None:
    assert versions.watermark_key(fields, 2) == key


def test_what_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SPARK", "3.5.9")
    monkeypatch.setattr(versions, "HAS_PYTHON_SOURCES", False)
    monkeypatch.setattr(versions, "HAS_READ_LIMITS", False)
    said = versions.missing()
    assert said is not None
    assert said.startswith("Spark 3.5.9 has no Python sources")
    assert "\n" not in said
    for refuse in (versions.refuse_missing_python_sources, versions.refuse_untold_start):
        with pytest.raises(UsageError, match=r"use 4\.[02] or newer"):
            refuse("slackwater-feed")


@pytest.mark.parametrize("version", ["3.4.4", "5.0.0"])
def test_a_version_that_was_never_tried_is_told(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(versions, "SPARK", version)
    with pytest.raises(UsageError, match="was never tried"):
        versions.check_version()


def test_a_source_that_is_not_told_its_start_goes_on_where_it_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As before Spark 4.2: the first batch reads all that has come, the next one is limited."""
    from pyspark.sql.types import StructType, TimestampType

    from slackwater.engines.spark.sources import feed
    from slackwater.engines.spark.sources.feed_options import FeedOptions
    from slackwater.engines.spark.sources.process import now_us
    from slackwater.traffic import Traffic

    now = {"us": now_us()}
    monkeypatch.setattr(feed, "now_us", lambda: now["us"])
    traffic = Traffic(start_s=now["us"] // 1_000_000 - 60.0, rate="100")
    options = FeedOptions(
        traffic=traffic, generator="slackwater_bench.workloads.ysb_events:YsbEvents"
    )
    reader = feed.FeedReader(options, StructType().add("event_time", TimestampType()))
    first = reader.latestOffset()
    assert first == reader.reportLatestOffset()
    assert reader.latestOffset() == first  # nothing is new
    now["us"] += 10_000_000
    limited = reader.latestOffset(limit=versions.ReadMaxRows(5))
    assert limited["n"] == first["n"] + 5
