"""Which Python runs our data sources."""

import os
import sys
from typing import Any

from pyspark.sql import SparkSession


def use_this_interpreter(spark: SparkSession) -> None:
    """Make the processes of Python sources run where Slackwater is installed.

    PySpark takes their interpreter from ``PYSPARK_PYTHON`` alone when a session is built in Python;
    without it, it runs whatever ``python3`` is on the path. What is configured as
    ``spark.pyspark.python`` counts here, else the running interpreter.
    """
    context: Any = getattr(spark, "sparkContext", None)
    if context is not None and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = context.getConf().get("spark.pyspark.python", sys.executable)
