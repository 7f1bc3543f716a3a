"""Short runs on real engines: every arm is measured, and nothing stays changed."""

import os
from typing import Any

import pytest

from slackwater.core.errors import UsageError
from slackwater.enforce.rights import has_cap_sys_nice
from slackwater_bench.flink import find_flink
from slackwater_bench.journal import Journal
from slackwater_bench.lachesis.comparison import compare
from slackwater_bench.lachesis.settings import LachesisSettings

pytestmark = [
    pytest.mark.timeout(280),
    pytest.mark.skipif(not has_cap_sys_nice(), reason="nice values take CAP_SYS_NICE"),
]


def run(**settings: Any) -> dict[str, Any]:
    short = {"queries": 1, "slice_s": 6.0, "settle_s": 2.0, "rounds": 1, "warmup_s": 4.0, "work": 2}
    return compare(LachesisSettings(**{**short, **settings}), Journal())


def check(result: dict[str, Any], engine: str, arms: list[str]) -> None:
    assert [each["arm"] for each in result["runs"]] == arms
    for each in result["runs"]:
        seen = each["engines"][engine]
        assert seen["looks"] > 0
        assert len(seen["spread"]) == len(seen["oldest_s"]) == seen["looks"]
        if engine != "spark":  # a micro-batch on a busy machine may outlast a short slice
            assert seen["rows_per_s"]["out"] > 0
        if each["arm"] != "os":
            assert each["middleware"]["cycles"] > 0
            assert each["middleware"]["policies"][engine]["settings"] > 0, each["middleware"]
    assert os.getpriority(os.PRIO_PROCESS, 0) == os.getpriority(os.PRIO_PROCESS, os.getpid())


@pytest.mark.flink
def test_on_flink() -> None:
    try:
        find_flink()
    except UsageError as error:
        pytest.skip(str(error))
    check(run(engine="flink", arms=("os", "fcfs"), rate=50.0), "flink", ["os", "fcfs"])


@pytest.mark.spark
def test_on_spark_with_an_application_for_each_query() -> None:
    spark = {"engine": "spark", "queries": 2, "apart": True, "slice_s": 14.0}  # they begin anew
    result = run(arms=("queue-size", "os"), rate=50.0, **spark)
    check(result, "spark", ["queue-size", "os"])
