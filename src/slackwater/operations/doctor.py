"""Checks what Slackwater needs and says how to get what is missing."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from slackwater import policies
from slackwater.core.errors import SlackwaterError
from slackwater.ipc.unix_socket import runtime_dir


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    topic: str
    ok: bool
    detail: str  # what was found, or what to do


def examine() -> Iterator[Finding]:
    """Run all checks, cheap ones first."""
    yield Finding("python", sys.version_info >= (3, 11), sys.version.split()[0])
    yield _attempt("pyspark", _pyspark)
    yield _attempt("java", _java)
    yield Finding("cores", True, str(len(os.sched_getaffinity(0))))
    yield _attempt("control sockets", lambda: str(runtime_dir()))
    yield Finding("policies", True, ", ".join(policies.names()))
    yield from _gates()


def _attempt(topic: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(topic, True, check())
    except SlackwaterError as error:
        return Finding(topic, False, str(error))


def _pyspark() -> str:
    from slackwater.engines.spark.session.versions import check_version, missing

    version = check_version()
    return missing() or version


def _java() -> str:
    from slackwater.engines.spark.session.java import check_java

    found = check_java()
    return f"{found.text} ({found.executable})"


def _gates() -> Iterator[Finding]:
    """Look for the private names of Spark that gates, raised watermarks and read limits go by."""
    from slackwater.engines.spark.gates import clock as clock_gate
    from slackwater.engines.spark.gates import read_limits
    from slackwater.engines.spark.gates.execution import probe_raise
    from slackwater.engines.spark.session.session import session

    try:
        spark = session("slackwater-doctor", "local[1]")
    except SlackwaterError as error:
        yield Finding("clock gate", False, str(error))
        return
    try:
        gate = clock_gate.probe(spark)
        raising = gate or probe_raise(spark)
        limiting = gate or read_limits.probe(spark)
    finally:
        spark.stop()
    yield _available("clock gate", gate, "the source gate is used instead")
    yield _available("one batch a window", raising, "windows take two")
    yield _available("read limits", limiting, "rows are limited at our sources only")


def _available(topic: str, obstacle: str | None, instead: str) -> Finding:
    if obstacle is None:
        return Finding(topic, True, "available")
    return Finding(topic, False, f"{obstacle}; {instead}")
