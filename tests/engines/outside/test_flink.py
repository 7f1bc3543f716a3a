"""A real Flink, looked at from outside."""

import time

import pytest

from slackwater.common.procfs import thread_cpu_ns, thread_name
from slackwater.core.entities import Operator
from slackwater.core.errors import EngineError
from slackwater.engines.outside.flink import Flink
from slackwater.metrics import MetricProvider
from slackwater_bench.flink import LocalFlink, SqlClient
from slackwater_bench.flink.sql import cancel
from tests.flink_jobs import PIPELINE, SINK, SOURCE, start_job
from tests.waiting import eventually

pytestmark = [pytest.mark.flink, pytest.mark.timeout(240)]


def operators_of(driver: Flink) -> list[Operator]:
    """Those of jobs; there are also threads of Flink's own, which are nobody's."""
    return [operator for operator in driver.read(time.time()).operators if not operator.helper]


def settled(driver: Flink, threads: int) -> list[Operator]:
    """Operators of a reading in which so many threads were found."""
    seen: list[list[Operator]] = []

    def found() -> bool:
        seen.append(operators_of(driver))
        return sum(len(operator.threads) for operator in seen[-1]) == threads

    eventually(found, limit_s=60)
    return seen[-1]


@pytest.mark.parametrize("reporter", [True, False], ids=["prometheus", "rest"])
def test_operators_threads_and_queues_of_a_job(
    flink: LocalFlink, flink_sql: SqlClient, reporter: bool
) -> None:
    job = start_job(flink_sql, "pipeline")
    try:
        driver = Flink("f", flink.rest, flink.prometheus if reporter else ())
        operators = settled(driver, 4)
        (own,) = (o for o in driver.read(time.time()).operators if o.helper)
        assert "GC Thread#0" in {thread_name(thread) for thread in own.threads}
        assert not set(own.threads) & {t for o in operators for t in o.threads}
        names = {operator.name: operator for operator in operators}
        source = next(operator for operator in operators if operator.source)
        path = [source]
        while path[-1].downstream:
            path.append(names[path[-1].downstream[0]])
        assert [operator.query for operator in path] == ["pipeline"] * 4
        assert [thread_name(operator.threads[0])[:4] for operator in path] == [
            "Sour",
            "Calc",
            "Calc",
            "resu",
        ]
        provider = MetricProvider("f", driver.provides, ["queue-size", "selectivity", "input-rate"])

        def counted() -> bool:
            rate = provider.update(driver.read(time.time()))["input-rate"]
            return rate.get(path[1].name, 0) > 100

        eventually(counted, limit_s=60)
        values = provider.update(driver.read(time.time()))
        assert values["queue-size"].keys() == {operator.name for operator in path[1:]}
        assert values["selectivity"][path[2].name] == pytest.approx(0.4, abs=0.1)
    finally:
        cancel(flink.rest, job)


def test_jobs_of_equal_names_have_threads_of_their_own(
    flink: LocalFlink, flink_sql: SqlClient
) -> None:
    """The busy one is told from its idle twin by what its threads burn."""
    eventually(lambda: not Flink("f", flink.rest).read(0).operators, limit_s=60)
    jobs = [start_job(flink_sql, "twin", rate) for rate in (100_000_000, 1)]
    try:
        driver = Flink("f", flink.rest, flink.prometheus)
        operators = settled(driver, 8)
        assert {operator.query for operator in operators} == {f"twin#{job[:8]}" for job in jobs}
        threads = [thread for operator in operators for thread in operator.threads]
        assert len(set(threads)) == 8

        def burnt(job: str) -> int:
            mine = [o for o in operators if o.query == f"twin#{job[:8]}"]
            return sum(thread_cpu_ns(thread) for o in mine for thread in o.threads)

        eventually(lambda: burnt(jobs[0]) > 5 * burnt(jobs[1]) > 0, limit_s=60)
    finally:
        for job in jobs:
            cancel(flink.rest, job)


def test_a_statement_that_flink_refuses_is_one_line(flink_sql: SqlClient) -> None:
    with pytest.raises(EngineError) as caught:
        flink_sql.submit(
            "bad", [SOURCE.format(rate=1), SINK, "INSERT INTO results SELECT x FROM y"]
        )
    assert "Flink refuses bad" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_task_manager_that_dies_and_comes_back_is_followed(
    flink: LocalFlink, flink_sql: SqlClient
) -> None:
    retry = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "100",
        "restart-strategy.fixed-delay.delay": "1 s",
    }
    job = flink_sql.submit("survivor", [SOURCE.format(rate=10), SINK, PIPELINE], conf=retry)
    try:
        driver = Flink("f", flink.rest, flink.prometheus)
        before = {t for o in settled(driver, 4) for t in o.threads}
        flink.stop_task_manager()
        flink.start_task_manager()

        def moved() -> bool:
            try:
                operators = operators_of(driver)
            except EngineError:
                return False
            threads = {thread for operator in operators for thread in operator.threads}
            return len(threads) == 4 and not threads & before

        eventually(moved, limit_s=120)
    finally:
        cancel(flink.rest, job)
