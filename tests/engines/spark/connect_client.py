"""Client of a Connect server: ``python -m … URL NAME INPUT OUTPUT`` runs one query until told.

It has no JVM. When its standard input is closed it stops its fleet and prints what that has shown.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.core.errors import SlackwaterError
from slackwater.spark import ConnectFleet, Fleet
from tests.versions.files import counts


def main(url: str, name: str, source: str, output: str) -> None:
    spark = SparkSession.builder.remote(url).getOrCreate()
    try:
        Fleet(spark)
    except SlackwaterError as error:
        print(f"classic: {error}")
    with ConnectFleet(spark, name) as fleet:
        query = start(fleet, name, source, output)
        print("started", flush=True)
        sys.stdin.read()
        print(fleet.status())
        for decision in fleet.explain(5):
            print(f"decision: {decision['query']}: {decision['reason']}")
        query.stop()
        start(fleet, name, source, output)  # its end may not have been heard yet
    print(f"active: {len(spark.streams.active)}")
    spark.stop()


def start(fleet: ConnectFleet, name: str, source: str, output: str) -> StreamingQuery:
    held = fleet.gate(counts(fleet.spark, source), name, priority=2, max_wait=600)
    writer = held.writeStream.format("parquet").outputMode("append").queryName(name)
    writer = writer.option("checkpointLocation", str(Path(output) / "checkpoint"))
    return writer.start(str(Path(output) / "rows"))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except SlackwaterError as error:
        sys.exit(f"error: {error}")
