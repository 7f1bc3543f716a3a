"""Run a fleet of two queries with the installed package: ``python try_wheel.py FOLDER``."""

import sys
import time
from pathlib import Path

from pyspark.sql import functions as F

import slackwater
import slackwater.testing
from slackwater.spark import Fleet, session

LIMIT_S = 120.0

folder = Path(sys.argv[1])
assert Path(slackwater.__file__).is_relative_to(folder), f"tried out {slackwater.__file__}"
assert not {"matplotlib", "psutil"} & sys.modules.keys()
slackwater.testing.check_policy("klink")

spark = session("try-wheel", "local[2]", conf={"spark.sql.shuffle.partitions": "1"})
spark.sparkContext.setLogLevel("ERROR")
rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
windows = rows.withWatermark("timestamp", "0 seconds").groupBy(F.window("timestamp", "1 second"))
with Fleet(spark, "klink") as fleet:
    for name in ("first", "second"):
        fleet.start(windows.count().writeStream.format("memory").outputMode("append"), name=name)
    deadline_s = time.monotonic() + LIMIT_S
    found = {}
    while time.monotonic() < deadline_s and not all(found.get(n) for n in ("first", "second")):
        time.sleep(0.5)
        found = {name: spark.table(name).count() for name in ("first", "second")}
    decided = {decision["query"] for decision in fleet.explain()}
    failures = fleet.failures
spark.stop()
assert not failures, failures
assert all(found.values()), f"windows that came out: {found}"
assert decided == {"first", "second"}, f"decisions about {decided}"
print(f"windows that came out: {found}")
