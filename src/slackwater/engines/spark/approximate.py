"""Builds approximate queries: a windowed aggregate of weighted rows, with intervals."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater import sampling
from slackwater.core.errors import UsageError
from slackwater.engines.spark.finishing import ROOM, ROWS, Finishing
from slackwater.engines.spark.plan_tree import java_node, read_plan, text_interval_s
from slackwater.engines.spark.planner import Planner
from slackwater.engines.spark.sampled_rows import SAMPLE
from slackwater.sampling.aggregates import Aggregate
from slackwater.sampling.delays import LEVELS
from slackwater.sampling.grid import Grid
from slackwater.sampling.promise import Promise


@dataclass(frozen=True)
class Approximation:
    """An approximate query before it starts."""

    results: DataFrame
    planner: Planner


def approximate(
    df: DataFrame,
    *,
    time: str,
    window: str,
    slide: str | None = None,
    offset: str | None = None,
    by: Sequence[str] = (),
    aggregates: Mapping[str, str],
    error: float = 0.05,
    confidence: float = 0.95,
    sampler: str = "aion",
    substream: str = "600 milliseconds",
) -> Approximation:
    """See :meth:`slackwater.spark.Fleet.approximate`."""
    promise = Promise(error, confidence)
    wanted = tuple(Aggregate.parse(name, text) for name, text in aggregates.items())
    _check(df, time, by, wanted)
    grid = Grid(
        _us(df, window),
        _us(df, slide or window),
        _us(df, offset) if offset else 0,
        _us(df, substream),
    )
    name = f"slackwater-{uuid.uuid4().hex[:8]}"
    planner = Planner(name, _plan_path(df), sampling.load(sampler), promise, grid)
    finishing = Finishing(("window", *by), wanted, promise)
    return Approximation(_query(df, time, tuple(by), grid, finishing, name), planner)


def _query(
    df: DataFrame, time: str, by: tuple[str, ...], grid: Grid, finishing: Finishing, name: str
) -> DataFrame:
    seen = df.observe(
        f"{name}.input",
        F.count(F.lit(1)).alias("rows"),
        F.sum(1 / F.col(f"{SAMPLE}.rate")).alias("arrived"),
        F.percentile_approx(f"{SAMPLE}.delay", list(LEVELS), F.lit(2000)).alias("delays"),
        F.max(f"{SAMPLE}.delay").alias("largest"),
    )
    # Zero: how long stragglers are waited for is the source's to say, by its ceiling.
    marked = seen.withWatermark(time, "0 seconds")
    lengths = (grid.size_us, grid.slide_us, grid.phase_us % grid.slide_us)
    expanded = marked.select(
        F.window(time, *(f"{length} microseconds" for length in lengths)).alias("window"),
        F.col(time).alias("slackwater_time"),
        F.col(SAMPLE),
        *by,
        *(F.col(column) for column in finishing.columns if column not in by),
    )
    place = _place(F.col("window.end"), F.col("slackwater_time"), grid)
    rows = expanded.select(
        "*",
        F.element_at(f"{SAMPLE}.weights", place).alias("slackwater_weight"),
        F.element_at(f"{SAMPLE}.doubts", place).alias("slackwater_doubt"),
    ).where("slackwater_weight > 0")
    sums = rows.groupBy("window", *by).agg(
        *finishing.sums(
            F.col("slackwater_weight"), F.col("slackwater_doubt"), F.col(f"{SAMPLE}.rate")
        )
    )
    finished = sums.coalesce(1).mapInArrow(finishing, finishing.schema(sums.schema))
    return finished.observe(
        f"{name}.result",
        F.min(ROOM).alias("room"),
        F.sum(ROWS).alias("total"),
        F.approx_count_distinct("window.end").alias("windows"),
    ).drop(ROOM, ROWS)


def _place(end: Column, time: Column, grid: Grid) -> Column:
    """Which of the windows that a row can be in this is, from 1 on."""
    before_end = F.unix_micros(end) - 1 - F.unix_micros(time)
    return (F.floor(before_end / grid.slide_us) + 1).cast("int")


def _check(
    df: DataFrame, time: str, by: Sequence[str], aggregates: Sequence[Aggregate]
) -> None:
    if not df.isStreaming:
        raise UsageError("a batch DataFrame needs no approximation; read it with readStream")
    if not aggregates:
        raise UsageError("an approximate query needs at least one aggregate")
    needed = [time, *by, *(c for a in aggregates for c in a.columns)]
    missing = [column for column in needed if column not in df.columns]
    if missing:
        raise UsageError(f"the input has no column {missing[0]!r}; it has: {', '.join(df.columns)}")
    if SAMPLE not in df.columns:
        raise UsageError(
            f"the input has no column {SAMPLE!r}: read it from a source of ours with sampled=True "
            "and keep that column up to here"
        )


def _plan_path(df: DataFrame) -> Path:
    """Where the source of the input looks for its plan: an option of its."""
    plan = df._jdf.queryExecution().analyzed()
    paths = {
        str(java_node(plan, node).extraOptions().get("plan"))
        for node in read_plan(plan).walk()
        if node.name.startswith("Streaming")
    } - {"None"}
    if len(paths) != 1:
        raise UsageError(f"an approximate query needs one sampled source, not {len(paths)}")
    return Path(paths.pop())


def _us(df: DataFrame, text: str) -> int:
    return round(1e6 * text_interval_s(text, df._jdf.queryExecution().analyzed()))
