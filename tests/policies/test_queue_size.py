"""Queue size: the most rows first."""

from slackwater import policies
from slackwater.core import QueryMetrics, QuerySpec, QueryState, Snapshot


def query(name: str, admitted_s: float | None = 9.0, **metrics: float) -> QueryState:
    return QueryState(
        QuerySpec(name, max_wait_s=100),
        "waiting",
        since_s=9.5,
        admitted_s=admitted_s,
        metrics=QueryMetrics(**metrics),  # type: ignore[arg-type]
    )


def reasons(*queries: QueryState) -> list[tuple[str, str]]:
    decision = policies.load("queue-size").decide(Snapshot(10.0, len(queries), queries))
    return [(admission.query, admission.reason) for admission in decision.admissions]


def test_the_largest_backlog_first() -> None:
    assert reasons(query("a", backlog_rows=5), query("b", backlog_rows=50)) == [
        ("b", "50 rows waiting"),
        ("a", "5 rows waiting"),
    ]


def test_rows_that_arrived_since_the_last_batch_began_count() -> None:
    slow = query("slow", backlog_rows=50, arrival_rate=10)
    fast = query("fast", backlog_rows=0, arrival_rate=100)
    assert reasons(slow, fast) == [("fast", "100 rows waiting"), ("slow", "60 rows waiting")]


def test_a_source_that_does_not_tell_its_backlog_is_judged_by_its_arrivals() -> None:
    assert reasons(query("a", arrival_rate=30)) == [("a", "30 rows waiting")]


def test_unknown_queries_come_first() -> None:
    known, unknown = query("known", backlog_rows=9000), query("new", admitted_s=None)
    assert reasons(known, unknown)[0] == ("new", "backlog not known yet")
