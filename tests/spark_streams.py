"""A Spark application with two streaming queries and its web port open.

``python spark_streams.py`` prints the port and the JVM's process id, then runs until its standard
input is closed. ``fast`` reads 1,000 rows a second, ``slow`` keeps one task busy for long.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def main() -> None:
    from pyspark.sql.functions import col, udf

    from slackwater.engines.spark.session.session import session

    conf = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.sql.streaming.metricsEnabled": "true",
        "spark.sql.shuffle.partitions": "1",
    }
    spark = session("outside", "local[2]", conf=conf)
    spark.sparkContext.setLogLevel("OFF")

    @udf("long")
    def dawdle(value: int) -> int:
        time.sleep(0.02)
        return value

    rows = spark.readStream.format("rate").option("numPartitions", 1)
    fast = rows.option("rowsPerSecond", 1000).load()
    fast.writeStream.format("noop").queryName("fast").start()
    slow = rows.option("rowsPerSecond", 200).load().select(dawdle(col("value")))
    slow.writeStream.format("noop").queryName("slow").start()
    url = spark.sparkContext.uiWebUrl
    assert url is not None
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    print(json.dumps({"port": int(url.rpartition(":")[2]), "pid": pid}), flush=True)
    sys.stdin.read()


@contextmanager
def spark_streams() -> Iterator[dict[str, Any]]:
    """Run it; ``port`` and ``pid``."""
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield {**json.loads(process.stdout.readline()), "python": process.pid}
    finally:
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
