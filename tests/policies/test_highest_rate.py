"""Highest rate: the most output for the time it takes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from slackwater import policies
from slackwater.core import QueryMetrics, QuerySpec, QueryState, Snapshot
from slackwater.policies.highest_rate import output_rate

METRICS = QueryMetrics(
    backlog_rows=1000, selectivity=0.1, batch_fixed_s=0.1, batch_per_row_s=0.0001
)


def query(name: str, metrics: QueryMetrics = METRICS) -> QueryState:
    return QueryState(QuerySpec(name, max_wait_s=100), "waiting", since_s=9.5, metrics=metrics)


def admitted(*queries: QueryState) -> list[str]:
    decision = policies.load("highest-rate").decide(Snapshot(10.0, len(queries), queries))
    return [admission.query for admission in decision.admissions]


def test_higher_selectivity_and_lower_cost_win() -> None:
    productive = query("productive", replace(METRICS, selectivity=0.5))
    dear = query("dear", replace(METRICS, batch_fixed_s=0.4))
    assert admitted(dear, query("plain"), productive) == ["productive", "plain", "dear"]


def test_a_larger_backlog_shares_the_fixed_cost() -> None:
    assert admitted(query("few", replace(METRICS, backlog_rows=10)), query("many")) == [
        "many",
        "few",
    ]


def test_nothing_to_read_comes_last_and_unknown_first() -> None:
    empty = query("empty", replace(METRICS, backlog_rows=0))
    new = query("new", QueryMetrics())
    assert admitted(empty, query("plain"), new) == ["new", "plain", "empty"]


def test_a_query_without_cost_is_no_problem() -> None:
    free = replace(METRICS, batch_fixed_s=0.0, batch_per_row_s=0.0)
    assert admitted(query("plain"), query("free", free)) == ["free", "plain"]
    assert output_rate(query("idle", replace(free, backlog_rows=0)), 10.0) == 0.0


def test_the_reason_has_the_figure() -> None:
    decision = policies.load("highest-rate").decide(Snapshot(10.0, 1, (query("q"),)))
    assert decision.admissions[0].reason == "500.0 rows out per s of work"


@given(
    rows=st.floats(1, 1e6),
    selectivity=st.floats(1e-6, 10),
    fixed_s=st.floats(0.001, 10),
    per_row_s=st.floats(0, 0.01),
)
def test_it_is_selectivity_over_cost_of_a_row(
    rows: float, selectivity: float, fixed_s: float, per_row_s: float
) -> None:
    metrics = QueryMetrics(
        backlog_rows=rows,
        selectivity=selectivity,
        batch_fixed_s=fixed_s,
        batch_per_row_s=per_row_s,
    )
    seconds_per_row = fixed_s / rows + per_row_s
    found = output_rate(query("q", metrics), 10.0)
    assert found is not None
    assert abs(found - selectivity / seconds_per_row) <= 1e-9 * found
