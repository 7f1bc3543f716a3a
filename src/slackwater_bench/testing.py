"""Checks that every workload passes, ours and others'; they raise ``AssertionError`` with a reason.

A workload of your own derives from :class:`slackwater_bench.workloads.base.Workload` and is named
``module:Class`` wherever ours have a name: ``slackwater bench mine:Doors --policies klink``.
"""

from collections import Counter
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from slackwater.core.clock import RealClock
from slackwater.engines.spark.sources.feed_options import load_generator
from slackwater.traffic import Traffic
from slackwater_bench.workloads.base import Workload, collect_windows, differences

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_S = 1_700_000_000.0  # any moment will do
SECONDS = 30  # of traffic, without Spark
SPARK_S = 12  # with it
LATEST_S = 20  # since when that traffic is over


def check_workload(kind: type[Workload], **options: Any) -> None:
    """Check what a workload says of itself, its events and its truth, without Spark.

    Parameters
    ----------
    kind
        The class.
    options
        Of its constructor, besides the traffic.

    >>> from slackwater_bench.workloads.ysb import Ysb
    >>> check_workload(Ysb, campaigns=3)
    """
    assert is_dataclass(kind), f"{kind.__name__}: make it a frozen dataclass, keywords only"
    assert getattr(kind, "name", ""), f"{kind.__name__}: give it a name"
    assert getattr(kind, "columns", ()), f"{kind.__name__}: name the columns of its results"
    workload = kind(traffic=Traffic(start_s=START_S, rate="200", partitions=2), **options)
    _check_events(workload)
    _check_windows(workload)
    _check_truth(workload)


def check_results(kind: type[Workload], spark: "SparkSession", **options: Any) -> None:
    """Check that Spark's rows are those of the truth, over traffic that has ended.

    Parameters
    ----------
    kind, options
        As :func:`check_workload` takes them.
    spark
        Where its query runs.
    """
    start_s = RealClock().now() // 1 - SPARK_S - LATEST_S
    traffic = Traffic(start_s=start_s, stop_s=start_s + SPARK_S, rate="200", partitions=2)
    workload = kind(traffic=traffic, **options)
    name = f"check_{kind.__name__.lower()}"
    writer = workload.query(spark).writeStream.format("memory").queryName(name)
    query = writer.outputMode("append").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    seen = collect_windows(spark.table(name), workload.columns)
    start_us = round(start_s * 1e6)
    # A window is out when a later event than its end and the watermark's delay has come.
    last_us = start_us + round((SPARK_S - workload.watermark_ms / 1000) * 1e6)
    expected = {end: rows for end, rows in workload.truth(start_us, last_us).items() if rows}
    if expected and max(expected) not in seen:
        del expected[max(expected)]
    assert expected, f"no window of {workload.name} has rows: its windows are too long to check"
    assert not (wrong := differences(expected, seen)), "; ".join(wrong)


def _check_events(workload: Workload) -> None:
    """Check that processes of Spark can make the events, and make the same whatever is read."""
    options = workload.feed_options()
    generator = load_generator(options.generator, options.arguments, workload.traffic.seed)
    assert isinstance(generator, type(workload.events)), "the feed's events are not the truth's"
    declared = {column.split()[0] for column in generator.schema.split(", ")}
    nothing = workload.events.columns(0, np.array([], dtype=np.int64))
    assert set(nothing) == declared, f"columns of events are not those of schema: {declared}"
    assert not any(map(len, nothing.values())), "no events have rows"
    index = np.array([0, 1, 4095, 4096, 7])
    together = workload.events.columns(1, index)
    for row, number in enumerate(index):
        alone = workload.events.columns(1, np.array([number]))
        same = all(alone[name][0] == together[name][row] for name in together)
        assert same, f"event {number} depends on which events are made with it"


def _check_windows(workload: Workload) -> None:
    first_us, last_us = _stretch()
    ends = workload.window_ends(first_us, last_us)
    assert ends == sorted(set(ends)), "window ends come in order, each once"
    assert ends, f"no window ends within {SECONDS} s"
    assert all(first_us < end <= last_us for end in ends), "a window ends outside of the stretch"


def _check_truth(workload: Workload) -> None:
    truth = workload.truth(*_stretch())
    assert list(truth) == workload.window_ends(*_stretch()), "the truth has other windows"
    assert any(truth.values()), "the truth has no row: nothing could be compared"
    for end, rows in truth.items():
        assert isinstance(rows, Counter), f"the truth of window {end} is no Counter of rows"
        wrong = [row for row in rows if len(row) != len(workload.columns)]
        assert not wrong, f"a row of the truth is not like {workload.columns}: {wrong[:1]}"
    assert replace(workload).truth(*_stretch()) == truth, "the same traffic gives another truth"
    end = max(end for end, rows in truth.items() if rows)
    assert workload.truth(end - 1, end)[end] == truth[end], "truth depends on the range asked for"


def _stretch() -> tuple[int, int]:
    return round(START_S * 1e6), round((START_S + SECONDS) * 1e6)
