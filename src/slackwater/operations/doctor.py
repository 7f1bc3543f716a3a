"""Checks what Slackwater needs and says how to get what is missing."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version

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
    yield Finding("pyspark", version("pyspark").startswith("4.3"), version("pyspark"))
    yield _attempt("java", _java)
    yield Finding("cores", True, str(len(os.sched_getaffinity(0))))
    yield _attempt("control sockets", lambda: str(runtime_dir()))
    yield Finding("policies", True, ", ".join(policies.names()))
    yield _attempt("clock gate", _clock_gate)


def _attempt(topic: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(topic, True, check())
    except SlackwaterError as error:
        return Finding(topic, False, str(error))


def _java() -> str:
    from slackwater.engines.spark.session.java import check_java

    found = check_java()
    return f"{found.text} ({found.executable})"


def _clock_gate() -> str:
    from slackwater.engines.spark.gates import clock as clock_gate
    from slackwater.engines.spark.session.session import session

    spark = session("slackwater-doctor", "local[1]")
    try:
        obstacle = clock_gate.probe(spark)
    finally:
        spark.stop()
    if obstacle is not None:
        raise SlackwaterError(f"{obstacle}; the source gate is used instead")
    return "available"
