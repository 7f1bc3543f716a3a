"""Synthetic pipelines: repeatable, different, and the same on Spark as in the truth."""

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater_bench.workloads.riot_etl import RiotEtl
from slackwater_bench.workloads.riot_stats import RiotStats
from slackwater_bench.workloads.synthetic import WIDTH, Synthetic, pipeline, synthetic_queries
from slackwater_bench.workloads.voip_stream import VoipStream


def test_the_same_seed_gives_the_same_queries_and_another_gives_others() -> None:
    first, again = ([q.stages for q in synthetic_queries(20)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 20
    assert first != [q.stages for q in synthetic_queries(20, seed=2)]


def test_costs_and_selectivities_are_spread_over_their_ranges() -> None:
    stages = [stage for query in synthetic_queries(200, work=100) for stage in query.stages]
    work = np.array([stage.work for stage in stages])
    assert work.min() < 30
    assert work.max() > 190
    shares = np.array([stage.selectivity for stage in stages])
    assert 0.49 < shares.min() < 0.52
    assert 0.98 < shares.max() <= 1
    assert not any(stage.blocks for stage in stages)


def test_a_tenth_of_the_operators_block_where_asked_for() -> None:
    queries = synthetic_queries(200, blocking=True)
    blocking = [stage.blocks for query in queries for stage in query.stages]
    assert 0.07 < np.mean(blocking) < 0.13


@pytest.mark.parametrize("wrong", [{"operators": 0}, {"operators": 9}, {"work": 0}])
def test_what_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Synthetic(**wrong)


@pytest.mark.spark
@pytest.mark.parametrize("blocking", [False, True])
def test_spark_lets_the_rows_through_that_the_truth_says(
    spark: SparkSession, blocking: bool
) -> None:
    query = Synthetic(number=3, work=2, blocking=blocking)
    results = pipeline(query, spark.range(3000)).select("id", F.length("p"))
    assert {tuple(row) for row in results.collect()} == {
        (int(n), WIDTH) for n in query.passing(np.arange(3000))
    }


@pytest.mark.spark
def test_etl_on_spark_gives_what_its_truth_says(spark: SparkSession) -> None:
    query = RiotEtl(seed=3)
    rows = query.pipeline(spark.range(3000)).select("id", "sensor", F.round("v", 4), "zone")
    assert sorted(tuple(row) for row in rows.collect()) == query.truth(np.arange(3000))


@pytest.mark.spark
def test_stats_on_spark_gives_what_its_truth_says(spark: SparkSession) -> None:
    query = RiotStats(seed=3)
    rows = query.pipeline(spark.range(3000)).select("w", "sensor", "kind", F.round("value", 4))
    assert sorted(tuple(row) for row in rows.collect()) == query.truth(np.arange(3000))


@pytest.mark.spark
def test_voip_stream_on_spark_reports_whom_its_truth_says(spark: SparkSession) -> None:
    query = VoipStream(seed=3)
    rows = query.pipeline(spark.range(40_000)).select("w", "caller", "score")
    found = sorted(tuple(row) for row in rows.collect())
    expected = query.truth(np.arange(40_000))
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    assert [row[2] for row in found] == pytest.approx([row[2] for row in expected], abs=1e-4)
    assert found
