"""Which failures start a query again."""

from slackwater.core import QuerySpec
from slackwater.engines.spark.queries import restarts
from slackwater.engines.spark.queries.registry import Member
from slackwater.engines.spark.queries.restarts import MAX_RESTARTS, Restarter
from tests.waiting import eventually

LOST = "org.apache.spark.SparkException: Python worker failed to connect back.\n\tat somewhere"


def member() -> Member:
    return Member(QuerySpec("q"), "clock", writer=object())  # type: ignore[arg-type]


def test_a_worker_that_did_not_connect_back_is_tried_again(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(restarts, "PAUSE_S", 0.0)
    launched: list[Member] = []
    restarter = Restarter(launched.append)
    query = member()
    restarter.failed(query, LOST)
    eventually(lambda: launched == [query] and query.error is None)
    assert (query.restarts, query.ready.is_set()) == (1, False)
    query.ready.set()
    restarter.close()


def test_it_gives_up_when_it_fails_again_and_again(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(restarts, "PAUSE_S", 0.0)
    query = member()

    def launch(failing: Member) -> None:
        failing.ready.set()
        restarter.failed(failing, LOST)

    restarter = Restarter(launch)
    restarter.failed(query, LOST)
    eventually(lambda: query.restarts == MAX_RESTARTS)
    eventually(query.ready.is_set)
    restarter.close()
    assert query.restarts == MAX_RESTARTS


def test_an_error_of_the_query_s_own_is_left_to_the_user() -> None:
    launched: list[Member] = []
    restarter = Restarter(launched.append)
    query = member()
    restarter.failed(query, "java.lang.ArithmeticException: / by zero\n\tat somewhere")
    restarter.close()
    assert launched == []
    assert query.error == "java.lang.ArithmeticException: / by zero"
    assert query.ready.is_set()


def test_a_query_that_only_the_user_can_start_is_reported() -> None:
    restarter = Restarter(lambda member: None)
    query = Member(QuerySpec("q"), "source")
    restarter.failed(query, LOST)
    restarter.close()
    assert query.error == "org.apache.spark.SparkException: Python worker failed to connect back."
