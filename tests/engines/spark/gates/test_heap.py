"""What of a heap counts as used."""

import pytest
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.heap import Heap, lasting_bytes


def test_garbage_is_not_counted() -> None:
    assert lasting_bytes(used=900, left=200) == 200


def test_all_counts_until_something_was_collected() -> None:
    assert lasting_bytes(used=900, left=0) == 900
    assert lasting_bytes(used=900, left=None) == 900


@pytest.mark.spark
def test_the_heap_of_a_session_is_told(spark: SparkSession) -> None:
    told = Heap(spark).message()
    assert 0 < told.used < told.limit
