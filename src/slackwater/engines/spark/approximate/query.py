"""Builds approximate queries: a windowed aggregate of weighted rows, with intervals."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater import sampling
from slackwater.core.errors import UsageError
from slackwater.engines.spark.approximate.filter import RowFilter
from slackwater.engines.spark.approximate.finishing import BOUNDED, RATE, ROOM, ROWS, Finishing
from slackwater.engines.spark.approximate.planner import Follow, Planner
from slackwater.engines.spark.plans.tree import source_options, text_interval_s
from slackwater.engines.spark.sources.directives import DirectivesFile
from slackwater.engines.spark.sources.sampled_rows import SAMPLE
from slackwater.sampling import Sampler
from slackwater.sampling.aggregates import Aggregate
from slackwater.sampling.delays import LEVELS
from slackwater.sampling.grid import Grid
from slackwater.sampling.promise import Promise


@dataclass(frozen=True)
class Approximation:
    """An approximate query before it starts."""

    results: DataFrame
    planner: Planner
    keeps_open: bool  # whether the gate must keep windows open; a source of ours does it itself


def approximate(
    df: DataFrame,
    *,
    time: str,
    window: str,
    slide: str | None = None,
    offset: str | None = None,
    by: Sequence[str] = (),
    aggregates: Mapping[str, str],
    promise: Promise,
    sampler: str = "aion",
    arrival: str | None = None,
    can_hold: bool = True,
) -> Approximation:
    """Build an approximate query; see :meth:`slackwater.spark.Fleet.approximate`."""
    wanted = tuple(Aggregate.parse(name, text) for name, text in aggregates.items())
    _check(df, time, by, wanted, arrival)
    grid = Grid(
        _us(df, window),
        _us(df, slide or window),
        _us(df, offset) if offset else 0,
    )
    promise = promise.shared_by(len(wanted))
    name = f"slackwater-{uuid.uuid4().hex[:8]}"
    # Zero: how long stragglers are waited for is said by a ceiling, or by the gate.
    marked = df.withWatermark(time, "0 seconds")
    if arrival is None:
        follow: Follow = _sampled_source(df).sample
    else:
        row_filter = RowFilter(name, grid, df.sparkSession)
        follow = row_filter.follow
        marked = row_filter.sampled(marked, time, arrival)
    planner = Planner(name, follow, _sampler(sampler, grid, arrival, can_hold), promise, grid)
    finishing = Finishing(("window", *by), wanted, promise)
    results = _query(marked, time, tuple(by), grid, finishing, name)
    return Approximation(results, planner, keeps_open=arrival is not None and can_hold)


def _query(
    rows: DataFrame, time: str, by: tuple[str, ...], grid: Grid, finishing: Finishing, name: str
) -> DataFrame:
    seen = rows.observe(
        f"{name}.input",
        F.count(f"{SAMPLE}.delay").alias("rows"),  # not pulses
        F.percentile_approx(f"{SAMPLE}.delay", list(LEVELS), F.lit(2000)).alias("delays"),
        F.max(f"{SAMPLE}.delay").alias("largest"),
    )
    lengths = (grid.size_us, grid.slide_us, grid.phase_us % grid.slide_us)
    expanded = seen.select(
        F.window(time, *(f"{length} microseconds" for length in lengths)).alias("window"),
        F.col(time).alias("slackwater_time"),
        F.col(SAMPLE),
        *by,
        *(F.col(column) for column in finishing.columns if column not in by),
    )
    # A column of its own: Spark cannot compile common parts of expressions with a struct out of
    # Expand, which sliding windows are, and would go on without compiled code.
    place = _place(F.col("window.end"), F.col("slackwater_time"), grid)
    placed = expanded.withColumn("slackwater_place", place)
    weighed = placed.select(
        "*",
        F.element_at(f"{SAMPLE}.weights", F.col("slackwater_place")).alias("slackwater_weight"),
        F.element_at(f"{SAMPLE}.doubts", F.col("slackwater_place")).alias("slackwater_doubt"),
    ).where("slackwater_weight > 0")
    sums = weighed.groupBy("window", *by).agg(
        *finishing.sums(F.col("slackwater_weight"), F.col("slackwater_doubt"), F.col(SAMPLE))
    )
    return (
        finishing.result(sums)
        .observe(
            f"{name}.result",
            F.min(ROOM).alias("room"),
            F.sum(ROWS).alias("total"),
            F.approx_count_distinct("window.end").alias("windows"),
        )
        .drop(ROOM, ROWS)
    )


def _place(end: Column, time: Column, grid: Grid) -> Column:
    """Return which of the windows that a row can be in this is, from 1 on."""
    before_end = F.unix_micros(end) - 1 - F.unix_micros(time)
    return (F.floor(before_end / grid.slide_us) + 1).cast("int")


def _check(
    df: DataFrame,
    time: str,
    by: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: str | None,
) -> None:
    if not df.isStreaming:
        raise UsageError("a batch DataFrame needs no approximation; read it with readStream")
    if not aggregates:
        raise UsageError("an approximate query needs at least one aggregate")
    needed = [time, *by, *(c for a in aggregates for c in a.columns)]
    needed += [arrival] if arrival is not None else []
    for aggregate in aggregates:
        if aggregate.name in (RATE, BOUNDED, "window", "arrived", "least", "most", *by):
            raise UsageError(f"an aggregate cannot be called {aggregate.name!r}: it is taken")
    missing = [column for column in needed if column not in df.columns]
    if missing:
        raise UsageError(f"the input has no column {missing[0]!r}; it has: {', '.join(df.columns)}")
    if arrival is None and SAMPLE not in df.columns:
        raise UsageError(
            f"the input has no column {SAMPLE!r}: read it from a source of ours with sampled=True "
            "and keep that column up to here, or name the column with the arrival times of rows: "
            "arrival=..."
        )
    if arrival is not None and SAMPLE in df.columns:
        raise UsageError(f"arrival={arrival!r} is for sources that do not sample; leave it out")


def _sampler(name: str, grid: Grid, arrival: str | None, can_hold: bool) -> Sampler:
    if arrival is None:
        return sampling.load(name)
    # A gate keeps a window open by letting no batch begin, so some time must be left for them.
    longest_s = grid.slide_us / 2e6 if can_hold else 0.0
    chosen = sampling.load(name, max_wait_s=longest_s, first_wait_s=min(2.0, longest_s))
    if chosen.waits_for_all:
        raise UsageError(
            f"sampler {name!r} waits for all rows, which only a source of ours can do "
            "(sampled=True); with arrival=... use 'aion'"
        )
    return chosen


def _sampled_source(df: DataFrame) -> DirectivesFile:
    """Return where the source of the input looks for its plan."""
    found = source_options(df._jdf.queryExecution().analyzed(), "directives", "sampled")
    sampled = [each for each in found if each.get("sampled") == "true"]
    paths = {each["directives"] for each in sampled if "directives" in each}
    if len(paths) != 1:
        raise UsageError(f"an approximate query needs one sampled source, not {len(paths)}")
    file = DirectivesFile(Path(paths.pop()))
    if file.read().sample is not None:
        raise UsageError(
            "this source has an approximate query already, whose windows it follows: make another "
            "source for this one"
        )
    return file


def _us(df: DataFrame, text: str) -> int:
    return round(1e6 * text_interval_s(text, df._jdf.queryExecution().analyzed()))
