"""Which gate holds the queries of a fleet, and why."""

import logging
from typing import Literal

from pyspark.sql import SparkSession

from slackwater.core.errors import UsageError
from slackwater.engines.spark.gates import clock as clock_gate
from slackwater.engines.spark.session.versions import (
    HAS_PYTHON_SOURCES,
    missing,
    refuse_missing_python_sources,
)

log = logging.getLogger("slackwater.fleet")

GateKind = Literal["auto", "clock", "source", "none"]


def choose_gate(spark: SparkSession, wanted: GateKind) -> tuple[str, str]:
    """Choose the kind of gate; return it and the reason for it."""
    if wanted not in ("auto", "clock", "source", "none"):
        raise UsageError(f"unknown gate {wanted!r}; known: auto, clock, source, none")
    if lacks := missing():
        log.info(lacks)
    if wanted == "source":
        refuse_missing_python_sources("the source gate")
    if wanted in ("source", "none"):
        return wanted, "as asked"
    obstacle = clock_gate.probe(spark)
    if obstacle is None:
        reason = "as asked" if wanted == "clock" else f"Spark {spark.version} has what it needs"
        return "clock", reason
    if wanted == "clock":
        raise UsageError(f"no clock gate here: {obstacle}; use gate='source'")
    return "source" if HAS_PYTHON_SOURCES else "none", obstacle
