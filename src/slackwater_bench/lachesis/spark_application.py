"""The Spark application of a run: stock settings, its web port open, queries as fast as they can.

Reads the run's settings and which queries are its own from the first line of its standard input,
prints its port, starts its queries anew at every further line, and ends when that input is closed.
"""

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from slackwater.common.files import replace_text
from slackwater.core.errors import UsageError
from slackwater.engines.spark.session.session import session
from slackwater_bench.lachesis.settings import LachesisSettings
from slackwater_bench.workloads.riot_etl import RiotEtl
from slackwater_bench.workloads.riot_stats import RiotStats
from slackwater_bench.workloads.synthetic import Synthetic, pipeline
from slackwater_bench.workloads.voip_stream import VoipStream

CONF = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.sql.shuffle.partitions": "2",
}


class Tally(StreamingQueryListener):
    """Rows that each query has read, and the sum of their latencies, in a file for the observer.

    A batch reads what has arrived since the one before it began, evenly; its rows are done when it
    ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began_s: dict[str, float] = {}
        self._done: dict[str, list[float]] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self._began_s.pop(str(event.name), None)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        rows, name = progress.numInputRows, str(progress.name)
        began_s = datetime.fromisoformat(progress.timestamp).timestamp()
        if rows == 0:
            return
        before_s = self._began_s.get(name, began_s)
        self._began_s[name] = began_s
        ended_s = began_s + progress.durationMs["triggerExecution"] / 1000
        sums = self._done.setdefault(name, [0.0, 0.0])
        sums[0] += rows
        sums[1] += rows * (ended_s - (before_s + began_s) / 2)
        replace_text(self._path, json.dumps(self._done))


def query(settings: LachesisSettings, number: int, rows: DataFrame) -> tuple[str, DataFrame]:
    """Return one query of the run's workload: its name, and what it gives."""
    seed = settings.seed
    if settings.workload == "synthetic":
        made = Synthetic(number=number, seed=seed, work=settings.work, blocking=settings.blocking)
        return made.name, pipeline(made, rows)
    kinds: dict[str, type[RiotEtl] | type[RiotStats] | type[VoipStream]] = {
        "etl": RiotEtl,
        "stats": RiotStats,
        "voip-stream": VoipStream,
    }
    if settings.workload not in kinds:
        raise UsageError(
            f"{settings.workload} on Spark is a benchmark of its own: slackwater bench linear-road"
        )
    other = kinds[settings.workload](number=number, seed=seed)
    return other.name, other.pipeline(rows)


def main() -> None:
    wanted = json.loads(sys.stdin.readline())
    settings = LachesisSettings(**wanted["settings"])
    spark = session("lachesis", "local[2]", profile="large", conf=CONF)
    spark.sparkContext.setLogLevel("OFF")
    spark.streams.addListener(Tally(Path(wanted["tally"])))
    start(spark, settings, wanted["numbers"])
    url = spark.sparkContext.uiWebUrl
    assert url is not None
    print(json.dumps({"port": int(url.rpartition(":")[2])}), flush=True)
    for _ in sys.stdin:
        stop(spark)
        start(spark, settings, wanted["numbers"])
        print("started anew", flush=True)
    stop(spark)
    spark.stop()


def start(spark: SparkSession, settings: LachesisSettings, numbers: Sequence[int]) -> None:
    """Start queries whose sources begin now."""
    for number in numbers:
        rate = spark.readStream.format("rate").option("numPartitions", 2)
        rows = rate.option("rowsPerSecond", settings.rate_of(number)).load()
        name, results = query(settings, number, rows.select(F.col("value").alias("id")))
        writer = results.writeStream.format("noop").queryName(name)
        writer.outputMode("update").start()


def stop(spark: SparkSession) -> None:
    for running in spark.streams.active:
        running.stop()


if __name__ == "__main__":
    main()
