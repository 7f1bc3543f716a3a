"""What is read from the text of a plan is what discovery finds in the plan."""

import pytest
from pyspark.sql import SparkSession

from slackwater.core.windows import Deadlines
from slackwater.engines.spark.plans.discovery import discover
from slackwater.engines.spark.plans.explained import discover_explained
from tests.engines.spark.plans.test_discovery import SHAPES

pytestmark = pytest.mark.spark

SIMPLE = "tumbling", "tumbling with offset", "sliding"  # one window, one input


def shapes(found: Deadlines) -> set[tuple[str, float, float, float]]:
    return {(each.kind, each.size_s, each.slide_s, each.offset_s) for each in found.closing}


@pytest.mark.parametrize("shape", SHAPES)
def test_as_in_the_plan(spark: SparkSession, shape: str) -> None:
    """Windows of known length and all inputs, but not which input feeds which window."""
    df = SHAPES[shape][0](spark)
    found, known = discover_explained(df), discover(df)
    assert found.inputs == known.inputs
    assert shapes(found) == shapes(known)
    if shape in SIMPLE:
        assert found.windows[0].time_column == known.windows[0].time_column == "timestamp"


def test_a_shortened_plan_is_no_error(spark: SparkSession) -> None:
    df = SHAPES["sliding"][0](spark)
    spark.conf.set("spark.sql.maxPlanStringLength", "200")
    try:
        assert discover_explained(df).windows == ()
    finally:
        spark.conf.unset("spark.sql.maxPlanStringLength")
