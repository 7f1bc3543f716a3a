"""Discovery over many query shapes, each built with Spark and compared with what it must find."""

import math
import time
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from slackwater.core.windows import Deadlines, InputStream, Window
from slackwater.engines.spark.gates.source import GateSource
from slackwater.engines.spark.plans.discovery import GATE_FORMAT, discover, discover_query

pytestmark = pytest.mark.spark

Shape = Callable[[SparkSession], DataFrame]


def stream(spark: SparkSession, delay: str | None = "2 seconds") -> DataFrame:
    """A stream with columns ``timestamp`` and ``value``."""
    df = spark.readStream.format("rate").load()
    return df if delay is None else df.withWatermark("timestamp", delay)


def side(spark: SparkSession, suffix: str, delay: str) -> DataFrame:
    """A stream to join, with its own column names."""
    return stream(spark, delay).selectExpr(f"timestamp t{suffix}", f"value v{suffix}")


def rate(delay: float | None = 2.0, column: str | None = "timestamp") -> InputStream:
    """The input that `stream` must be seen as."""
    return InputStream("rate", column if delay is not None else None, delay)


def tumbling(size: float, column: str = "timestamp", inputs: tuple[int, ...] = (0,)) -> Window:
    return Window("tumbling", size, size, 0.0, column, inputs)


def windowed_twice(spark: SparkSession) -> DataFrame:
    first = stream(spark).groupBy(F.window("timestamp", "6 seconds"), "value").count()
    return first.groupBy(F.window(F.window_time("window"), "1 minute")).count()


def windowed_window(spark: SparkSession) -> DataFrame:
    first = stream(spark).groupBy(F.window("timestamp", "6 seconds"), "value").count()
    return first.groupBy(F.window("window", "1 minute")).count()


def joined(spark: SparkSession) -> DataFrame:
    within = "v1 = v2 and t2 >= t1 and t2 <= t1 + interval 10 seconds"
    return side(spark, "1", "2 seconds").join(side(spark, "2", "5 seconds"), F.expr(within))


def joined_on_window(spark: SparkSession) -> DataFrame:
    left = side(spark, "1", "2 seconds").withColumn("w", F.window("t1", "4 seconds"))
    right = side(spark, "2", "5 seconds").withColumn("w", F.window("t2", "4 seconds"))
    return left.join(right, "w")


def united(spark: SparkSession) -> DataFrame:
    return stream(spark, "2 seconds").union(stream(spark, "1 minute"))


def sql(text: str) -> Shape:
    def build(spark: SparkSession) -> DataFrame:
        stream(spark).createOrReplaceTempView("events")
        return spark.sql(text)

    return build


def joined_with_static(spark: SparkSession) -> DataFrame:
    names = spark.range(3).withColumnRenamed("id", "value")
    return stream(spark).join(names, "value").groupBy(F.window("timestamp", "3 seconds")).count()


def under_static_subquery(spark: SparkSession) -> DataFrame:
    spark.range(3).createOrReplaceTempView("limits")
    kept = stream(spark).where("value > (select max(id) from limits)")
    return kept.groupBy(F.window("timestamp", "3 seconds")).count()


def with_python_function(spark: SparkSession) -> DataFrame:
    twice = F.udf(lambda value: 2 * value, "long")
    rows = stream(spark).withColumn("double", twice("value"))
    return rows.groupBy(F.window("timestamp", "3 seconds")).agg(F.sum("double"))


def with_arbitrary_state(spark: SparkSession) -> DataFrame:
    timed = stream(spark).withColumn("w", F.window("timestamp", "3 seconds"))
    return timed.dropDuplicates(["w", "value"])


SHAPES: dict[str, tuple[Shape, Deadlines]] = {
    "tumbling": (
        lambda spark: stream(spark).groupBy(F.window("timestamp", "3 seconds")).count(),
        Deadlines((tumbling(3.0),), (rate(),)),
    ),
    "tumbling with offset": (
        lambda spark: (
            stream(spark)
            .groupBy(F.window("timestamp", "3 seconds", startTime="500 milliseconds"))
            .count()
        ),
        Deadlines((Window("tumbling", 3.0, 3.0, 0.5, "timestamp", (0,)),), (rate(),)),
    ),
    "sliding": (
        lambda spark: (
            stream(spark)
            .groupBy(F.window("timestamp", "6 seconds", "4 seconds", "1 second"), "value")
            .count()
        ),
        Deadlines((Window("sliding", 6.0, 4.0, 1.0, "timestamp", (0,)),), (rate(),)),
    ),
    "session": (
        lambda spark: stream(spark).groupBy(F.session_window("timestamp", "5 minutes")).count(),
        Deadlines((Window("session", 300.0, 300.0, 0.0, "timestamp", (0,)),), (rate(),)),
    ),
    "session, gap per row": (
        lambda spark: (
            stream(spark)
            .groupBy(F.session_window("timestamp", F.expr("concat(value + 1, ' seconds')")))
            .count()
        ),
        Deadlines((Window("session", math.inf, math.inf, 0.0, "timestamp", (0,)),), (rate(),)),
    ),
    "window in a column": (
        lambda spark: (
            stream(spark).withColumn("w", F.window("timestamp", "3 seconds")).groupBy("w").count()
        ),
        Deadlines((tumbling(3.0),), (rate(),)),
    ),
    "chained by window_time": (
        windowed_twice,
        Deadlines((tumbling(6.0), tumbling(60.0, "window_time(window)")), (rate(),)),
    ),
    "chained by window": (
        windowed_window,
        Deadlines((tumbling(6.0), tumbling(60.0, "window_time(window)")), (rate(),)),
    ),
    "join within a time range": (joined, Deadlines((), (rate(2.0), rate(5.0)))),
    "window after a join": (
        lambda spark: joined(spark).groupBy(F.window("t1", "3 seconds")).count(),
        Deadlines((tumbling(3.0, "t1", (0, 1)),), (rate(2.0), rate(5.0))),
    ),
    "join on windows": (
        joined_on_window,
        Deadlines((tumbling(4.0, "t1"), tumbling(4.0, "t2", (1,))), (rate(2.0), rate(5.0))),
    ),
    "union": (
        lambda spark: united(spark).groupBy(F.window("timestamp", "3 seconds")).count(),
        Deadlines((tumbling(3.0, inputs=(0, 1)),), (rate(2.0), rate(60.0))),
    ),
    "watermark after a union": (
        lambda spark: (
            stream(spark, None)
            .union(stream(spark, None))
            .withWatermark("timestamp", "250 milliseconds")
            .groupBy(F.window("timestamp", "3 seconds"))
            .count()
        ),
        Deadlines((tumbling(3.0, inputs=(0, 1)),), (rate(0.25), rate(0.25))),
    ),
    "two watermarks on one path": (
        lambda spark: stream(spark, "10 seconds").withWatermark("timestamp", "1 second"),
        Deadlines((), (rate(10.0),)),
    ),
    "duplicates within the watermark": (
        lambda spark: stream(spark).dropDuplicatesWithinWatermark(["value"]),
        Deadlines((), (rate(),)),
    ),
    "duplicates by window": (with_arbitrary_state, Deadlines((tumbling(3.0),), (rate(),))),
    "SQL": (
        sql("SELECT window.start, count(*) FROM events GROUP BY window(timestamp, '3 seconds')"),
        Deadlines((tumbling(3.0),), (rate(),)),
    ),
    "SQL, sliding, common tables": (
        sql(
            "WITH a AS (SELECT * FROM events), b AS (SELECT * FROM a WHERE value > 3) "
            "SELECT count(*) FROM b GROUP BY window(timestamp, '6 seconds', '3 seconds')"
        ),
        Deadlines((Window("sliding", 6.0, 3.0, 0.0, "timestamp", (0,)),), (rate(),)),
    ),
    "SQL, session": (
        sql("SELECT count(*) FROM events GROUP BY session_window(timestamp, '90 seconds')"),
        Deadlines((Window("session", 90.0, 90.0, 0.0, "timestamp", (0,)),), (rate(),)),
    ),
    "join with a static table": (joined_with_static, Deadlines((tumbling(3.0),), (rate(),))),
    "static subquery": (under_static_subquery, Deadlines((tumbling(3.0),), (rate(),))),
    "Python function": (with_python_function, Deadlines((tumbling(3.0),), (rate(),))),
    "no watermark": (
        lambda spark: stream(spark, None).groupBy(F.window("timestamp", "3 seconds")).count(),
        Deadlines((tumbling(3.0),), (rate(None),)),
    ),
    "no window": (lambda spark: stream(spark).where("value > 3"), Deadlines((), (rate(),))),
    "window that is only projected": (
        lambda spark: stream(spark).select(F.window("timestamp", "3 seconds")),
        Deadlines((), (rate(),)),
    ),
    "batch": (
        lambda spark: (
            spark.sql("SELECT timestamp '2026-01-01 00:00:00' t")
            .groupBy(F.window("t", "3 seconds"))
            .count()
        ),
        Deadlines(),
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shape(spark: SparkSession, shape: str) -> None:
    build, expected = SHAPES[shape]
    assert discover(build(spark)) == expected


def test_file_source_is_named_by_its_folder(spark: SparkSession, tmp_path) -> None:
    schema = StructType.fromDDL("t timestamp")
    files = spark.readStream.schema(schema).json(str(tmp_path)).withWatermark("t", "1 hour")
    found = discover(files.groupBy(F.window("t", "1 day")).count())
    (source,) = found.inputs
    assert source.name == f"FileSource[{tmp_path}]"
    assert (source.time_column, source.watermark_delay_s) == ("t", 3600.0)
    assert found.windows == (tumbling(86400.0, "t"),)


def test_settings_that_shorten_plan_strings_do_not_matter(spark: SparkSession) -> None:
    settings = {"spark.sql.maxPlanStringLength": "0", "spark.sql.debug.maxToStringFields": "1"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        build, expected = SHAPES["sliding"]
        assert discover(build(spark)) == expected
    finally:
        for key in settings:
            spark.conf.unset(key)


def test_source_gate_is_no_input(spark: SparkSession) -> None:
    build, expected = SHAPES["sliding"]
    df = build(spark)
    spark.dataSource.register(GateSource)
    gate = spark.readStream.format(GATE_FORMAT).schema(df.schema).load()
    assert discover(gate.union(df)) == expected


def test_override_replaces_what_it_states(spark: SparkSession) -> None:
    df = SHAPES["tumbling"][0](spark)
    mine = (Window("tumbling", 9.0, 9.0),)
    assert discover(df, Deadlines(windows=mine)) == Deadlines(mine, (rate(),))
    stated = Deadlines(mine, (InputStream("kafka", "t", 1.0),))
    assert discover(df, stated) is stated


@pytest.fixture
def started(spark: SparkSession) -> Iterator[Callable]:
    queries = []

    def start(df: DataFrame, mode: str):
        query = df.writeStream.format("noop").outputMode(mode).start()
        queries.append(query)
        return query

    yield start
    for query in queries:
        query.stop()


@pytest.mark.parametrize("shape", ["sliding", "union", "no window"])
def test_running_query(spark: SparkSession, started: Callable, shape: str) -> None:
    build, expected = SHAPES[shape]
    query = started(build(spark), "append")
    assert discover_query(query) == expected  # before its first batch
    limit = time.monotonic() + 60
    while query.lastProgress is None and time.monotonic() < limit:
        time.sleep(0.05)
    assert discover_query(query) == expected  # and after
    assert discover_query(spark.streams.get(query.id)) == expected
