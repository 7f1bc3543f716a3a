"""The KNN application labels as an obvious version does."""

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slackwater.traffic import Traffic
from slackwater_bench.workloads.knn import Knn

pytestmark = pytest.mark.spark


def test_labels_are_those_of_the_nearest(spark: SparkSession) -> None:
    knn = Knn(traffic=Traffic(start_s=0.0), references=30)
    chance = np.random.default_rng(2)
    x, y = chance.uniform(-20, 20, (2, 50))
    rows = spark.createDataFrame(
        [(float(a), float(b)) for a, b in zip(x, y, strict=True)], "x double, y double"
    )
    found = knn.labelled(rows.withColumn("event_time", F.current_timestamp())).collect()
    labels = {(row["x"], row["y"]): row["label"] for row in found}
    assert [labels[a, b] for a, b in zip(x, y, strict=True)] == knn.truth(x, y).tolist()
