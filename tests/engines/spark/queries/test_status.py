"""The table of a fleet's queries, without Spark."""

from slackwater.engines.spark.queries.status import FleetStatus, QueryStatus


def shown(*queries: QueryStatus) -> str:
    return str(FleetStatus("ads", "klink", "clock", "running", 3, queries))


def test_errors_and_reasons_that_look_like_markup_are_shown_as_they_are() -> None:
    found = shown(
        QueryStatus("q", "failed", "clock", 1.0, error="no such path [/in]"),
        QueryStatus("p", "held", "clock", 1.0, why_two_batches="the source [/in] is silent"),
    )
    assert "no such path [/in]" in found
    assert "p: two batches a window, because the source [/in] is silent" in found


def test_the_table_says_why_a_query_waits() -> None:
    held = QueryStatus("q", "held", "clock", 1.0, waits="next refresh in 38 s")
    assert "next refresh in 38 s" in shown(held, QueryStatus("p", "running", "clock", 1.0))
    assert "waits" not in shown(QueryStatus("p", "running", "clock", 1.0))


def test_kept_promises_are_shown_where_there_are_any() -> None:
    promised = QueryStatus("q", "held", "clock", 1.0, kept=98, broken=2)
    assert "98 of 100" in shown(promised, QueryStatus("p", "held", "clock", 1.0))
    assert "in time" not in shown(QueryStatus("p", "held", "clock", 1.0))


def test_rows_dropped_late_are_always_shown() -> None:
    assert "dropped late" in shown(QueryStatus("q", "held", "clock", 1.0))
    assert "17" in shown(QueryStatus("q", "held", "clock", 1.0, rows_dropped_by_watermark=17))
