"""A real Spark application, looked at from outside."""

import time
from typing import Any

import pytest

from slackwater.common.procfs import thread_name
from slackwater.core.errors import EngineError, UsageError
from slackwater.engines.outside.attach import thread_names
from slackwater.engines.outside.spark import Spark
from slackwater.metrics import MetricProvider
from tests.waiting import eventually

pytestmark = pytest.mark.spark


def test_every_query_is_found_with_its_thread_and_figures(streams: dict[str, Any]) -> None:
    driver = Spark("s", f"http://127.0.0.1:{streams['port']}")
    wanted = ["queue-size", "head-age", "highest-rate"]
    provider = MetricProvider("s", driver.provides, wanted)
    seen: dict[str, Any] = {}

    def told() -> bool:
        try:
            seen["reading"] = driver.read(time.time())
        except EngineError:  # it has only just started
            return False
        seen["values"] = provider.update(seen["reading"])
        return all(seen["values"][name].keys() >= {"fast", "slow"} for name in wanted)

    eventually(told, limit_s=60)
    operators = {operator.name: operator for operator in seen["reading"].operators}
    assert thread_name(operators["fast"].threads[0]).startswith("stream executio")
    assert operators["fast"].threads[0] != operators["slow"].threads[0]
    assert seen["values"]["queue-size"]["fast"] > 0
    assert operators["python workers"].helper


def test_a_task_that_stays_is_its_querys(streams: dict[str, Any]) -> None:
    driver = Spark("s", f"http://127.0.0.1:{streams['port']}")

    def joined() -> bool:
        operators = {o.name: o for o in driver.read(time.time()).operators}
        names = [thread_name(thread) for thread in operators["slow"].threads]
        return any(name.startswith("Executor task") for name in names)

    eventually(joined, limit_s=60, pause_s=0.2)


def test_by_its_process_id_threads_are_known_but_no_metrics(streams: dict[str, Any]) -> None:
    driver = Spark("s", pid=streams["pid"])
    reading = driver.read(time.time())
    assert {"fast", "slow"} <= {operator.name for operator in reading.operators}
    with pytest.raises(UsageError, match="cannot give the metric 'queue-size'"):
        MetricProvider("s", driver.provides, ["queue-size"])


def test_a_jvm_tells_its_threads_without_a_jdk(streams: dict[str, Any]) -> None:
    names = thread_names(streams["pid"])
    assert "main" in names.values()
    assert any(name.startswith("stream execution thread for fast") for name in names.values())


def test_what_is_no_jvm_is_left_alone(streams: dict[str, Any]) -> None:
    """The signal that asks a JVM for its threads would end any other process."""
    with pytest.raises(EngineError, match="is no JVM"):
        thread_names(streams["python"])


def test_nobody_at_the_port_is_one_line() -> None:
    with pytest.raises(EngineError, match="no process that may be looked at listens on port 1"):
        Spark("s", "http://127.0.0.1:1").read(0.0)


def test_rows_arrive_at_the_rate_between_batches_however_often_spark_looks() -> None:
    driver = Spark(rest="http://127.0.0.1:1")
    hasty = {"latency": 500.0, "processingRate-total": 2000.0, "inputRate-total": 40_000.0}
    driver._last_batch("q", hasty, 10.0)
    told = {"latency": 1000.0, "processingRate-total": 1000.0, "inputRate-total": 90_000.0}
    batch = driver._last_batch("q", told, 11.5)
    assert (batch.began_s, batch.arrival_rate) == (10.5, 1000.0)
    assert driver._last_batch("q", told, 14.0) is batch


def test_a_query_that_gets_nothing_has_no_queue() -> None:
    driver = Spark(rest="http://127.0.0.1:1")
    busy = {"latency": 500.0, "processingRate-total": 2000.0, "inputRate-total": 40_000.0}
    driver._last_batch("q", busy, 10.0)
    idle = {"latency": 10.0, "processingRate-total": 0.0, "inputRate-total": 0.0}
    assert driver._last_batch("q", idle, 20.0).arrival_rate == 0.0


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("127.0.0.1", "not an address such as"),
        ("http://127.0.0.1:port", "not an address such as"),
        ("http://192.0.2.1:4040", "another machine"),
    ],
)
def test_an_address_that_is_none_of_this_machine_is_refused(rest: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Spark(rest=rest)
