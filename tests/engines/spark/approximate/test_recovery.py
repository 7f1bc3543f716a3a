"""Approximate queries after `kill -9` of the driver: the ledger gives the same rows again."""

import time
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from slackwater.traffic import Traffic
from slackwater_bench.workloads.ysb import Ysb
from tests.fleet_process import FleetProcess
from tests.waiting import eventually

pytestmark = pytest.mark.spark

# All rows are equally late, so that K-Slack misses none and the truth is exact.
PIPELINE = """
from slackwater.engines.spark.sources.feed import load_feed
from slackwater.traffic import Traffic
from slackwater_bench.workloads.ysb import Ysb

def ysb(spark, start):
    traffic = Traffic(start_s=start, rate="6000", delays="constant:50ms", gaps="gamma:2", seed=3)
    workload = Ysb(traffic=traffic, campaigns=3, window_s=1.0)
    return workload.sampled_rows(load_feed(spark, workload.feed_options(sampled=True)))
"""

FLEET = """
name = 'test'
[spark]
master = 'local[2]'
[spark.conf]
'spark.sql.shuffle.partitions' = 2
[queries.q0]
query = 'pipeline:ysb'
format = 'parquet'
path = 'out/q0'
arguments = { start = START }
[queries.q0.approximate]
time = 'event_time'
window = '1 second'
by = ['campaign_id']
aggregates = { views = 'count()' }
sampler = 'SAMPLER'
"""


class Approximate(FleetProcess):
    """One approximate query over live traffic."""

    def __init__(self, folder: Path, sampler: str) -> None:
        super().__init__(folder, queries=1)
        self.start_s = float(int(time.time()))
        (folder / "pipeline.py").write_text(PIPELINE)
        text = FLEET.replace("START", str(self.start_s)).replace("SAMPLER", sampler)
        (folder / "fleet.toml").write_text(text)
        traffic = Traffic(
            start_s=self.start_s, rate="6000", delays="constant:50ms", gaps="gamma:2", seed=3
        )
        self.workload = Ysb(traffic=traffic, campaigns=3, window_s=1.0)

    def rows(self, spark: SparkSession) -> list[Row]:
        schema = (
            "window struct<start: timestamp, end: timestamp>, campaign_id string, views double, "
            "views_low double, views_high double, sampling_rate double, bounded boolean"
        )
        frame = spark.read.schema(schema).parquet(str(self.folder / "out" / "q0"))
        return frame.selectExpr("unix_micros(window.end) as end_us", "*").collect()


@pytest.mark.parametrize("sampler", ["k-slack", "aion"])
def test_nothing_is_lost_or_counted_twice(
    spark: SparkSession, tmp_path: Path, sampler: str
) -> None:
    fleet = Approximate(tmp_path, sampler)
    fleet.start()
    try:
        eventually(lambda: fleet.commits() >= 8, limit_s=120)
        fleet.kill()
        before = fleet.commits()
        fleet.start()
        eventually(lambda: fleet.commits() >= before + 8, limit_s=120)
        assert fleet.interrupt() == 0, fleet.log()
    finally:
        if fleet.process is not None and fleet.process.poll() is None:
            fleet.kill()
    rows = fleet.rows(spark)
    assert len({(row.end_us, row.campaign_id) for row in rows}) == len(rows)
    ends = sorted({row.end_us for row in rows})
    assert ends == list(range(ends[0], ends[-1] + 1, 1_000_000)), "a window is missing"
    whole = [row for row in rows if row.end_us > (fleet.start_s + 1) * 1e6]
    truths = {end_us: fleet.workload.true_values(end_us) for end_us in ends}
    if sampler == "k-slack":
        for row in whole:
            assert row.views == truths[row.end_us][(row.campaign_id,)]["count"]
    else:
        assert any(row.sampling_rate < 1 for row in whole), "nothing was sampled"
    promised = [row for row in whole if row.bounded]
    off = [abs(r.views / truths[r.end_us][(r.campaign_id,)]["count"] - 1) for r in promised]
    assert len(off) >= 5
    assert sum(each <= 0.05 for each in off) >= 0.8 * len(off)
