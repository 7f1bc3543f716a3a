"""A tuned session keeps Spark's promise: kill it, go on, nothing is lost or doubled."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

ROWS, STEP_MS, WINDOW_MS = 20, 1000, 3000  # per batch; so three batches fill a window

QUERY = f"""
import json, sys, time
from pathlib import Path
from pyspark.sql import functions as F
from slackwater.engines.spark.session.session import session

folder, batches = Path(sys.argv[1]), int(sys.argv[2])
spark = session(master="local[2]", conf={{"spark.sql.shuffle.partitions": "2"}})
spark.sparkContext.setLogLevel("OFF")
query = (
    spark.readStream.format("rate-micro-batch").option("rowsPerBatch", {ROWS})
    .option("advanceMillisPerBatch", {STEP_MS}).option("startTimestamp", 0).load()
    .withWatermark("timestamp", "0 seconds")
    .groupBy(F.window("timestamp", "3 seconds"), (F.col("value") % 2).alias("key"))
    .agg(F.count("*").alias("rows"), F.sum("value").alias("total"))
    .select(F.unix_millis("window.start").alias("start"), "key", "rows", "total")
    .writeStream.format("parquet").option("path", str(folder / "out"))
    .option("checkpointLocation", str(folder / "checkpoint")).outputMode("append").start()
)
while (query.lastProgress or {{"batchId": -1}})["batchId"] < batches:
    assert query.exception() is None, query.exception()
    time.sleep(0.1)
query.stop()
print(json.dumps([list(row) for row in spark.read.parquet(str(folder / "out")).collect()]))
"""


def start(folder: Path, batches: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", QUERY, str(folder), str(batches)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that Python and its JVM can be killed together
    )


def commits(folder: Path) -> int:
    return sum(name.name.isdigit() for name in (folder / "checkpoint" / "commits").glob("*"))


def kill_after(folder: Path, more: int) -> None:
    """Run until some more batches are committed, then kill -9 everything at once."""
    process = start(folder, 10_000)
    target, limit = commits(folder) + more, time.monotonic() + 120
    while commits(folder) < target:
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.spark
def test_windows_are_exact_after_two_kills(tmp_path: Path) -> None:
    kill_after(tmp_path, 4)
    kill_after(tmp_path, 5)
    done = commits(tmp_path)
    process = start(tmp_path, done + 6)
    answer, _ = process.communicate(timeout=200)
    assert process.returncode == 0
    found = Counter(tuple(row) for row in json.loads(answer.strip().splitlines()[-1]))

    last = max(start for start, *_ in found)
    assert last >= WINDOW_MS * ((done + 4) // 3 - 1)  # it went on after the kills
    expected: Counter[tuple[int, ...]] = Counter()
    for begin in range(0, last + 1, WINDOW_MS):
        first = begin // STEP_MS * ROWS
        values = range(first, first + WINDOW_MS // STEP_MS * ROWS)
        for key in (0, 1):
            mine = [value for value in values if value % 2 == key]
            expected[begin, key, len(mine), sum(mine)] += 1
    assert found == expected
