"""Progress that comes by two ways, or from a clock that was put back."""

from slackwater.engines.spark.queries.news import KEPT, News

FIRST, SECOND = "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z"


def test_progress_that_comes_twice_is_passed_on_once() -> None:
    news = News()
    found = [news.is_new("run", at) for at in (FIRST, FIRST, SECOND, FIRST)]
    assert found == [True, False, True, False]


def test_progress_after_a_clock_was_put_back_is_news() -> None:
    news = News()
    assert [news.is_new("run", at) for at in (SECOND, FIRST)] == [True, True]


def test_runs_have_nothing_to_do_with_each_other() -> None:
    news = News()
    assert news.is_new("one", FIRST)
    assert not news.knows("two", FIRST)
    assert news.is_new("two", FIRST)


def test_what_is_kept_of_a_run_is_bounded() -> None:
    news = News()
    for number in range(2 * KEPT):
        assert news.is_new("run", str(number))
    assert news.knows("run", str(2 * KEPT - 1))
    assert not news.knows("run", "0")
