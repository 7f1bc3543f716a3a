"""What an engine wrote against the truth, by hand-made rows."""

from collections import Counter

import pytest

from slackwater_bench.versus.judge import Verdict, Written, judge
from slackwater_bench.workloads.base import WindowRows

END = 3_000_000
TRUTH: WindowRows = {END: Counter({("a", 2): 1, ("b", 1): 1})}


def rows(*found: tuple[float, str, int], end_us: int = END) -> list[Written]:
    return [Written(at_s, end_us, key, value) for at_s, key, value in found]


RIGHT = rows((3.4, "a", 2), (3.5, "b", 1))


@pytest.mark.parametrize("appended", [True, False])
def test_a_window_stands_when_its_last_count_came(appended: bool) -> None:
    assert judge(TRUTH, RIGHT, appended) == Verdict(1, 1, 0, [0.5])


def test_counts_that_grow_stand_when_the_last_of_them_changed() -> None:
    found = rows((2.0, "a", 1), (2.5, "b", 1), (3.2, "a", 2), (3.9, "b", 1))
    assert judge(TRUTH, found, appended=False) == Verdict(1, 1, 0, [0.2])
    assert judge(TRUTH, found, appended=True) == Verdict(1, 1, 1, [])


def test_the_last_change_may_come_before_the_end() -> None:
    found = rows((2.0, "a", 2), (2.5, "b", 1))
    assert judge(TRUTH, found, appended=False).latencies_s == [-0.5]


@pytest.mark.parametrize("appended", [True, False])
@pytest.mark.parametrize(
    "found",
    [
        rows((3.4, "a", 2)),
        rows((3.4, "a", 2), (3.5, "b", 2)),
        [*RIGHT, *rows((3.6, "c", 1))],
        rows((3.4, "a", 2), (3.5, "b", 1), (3.6, "b", 2)),
    ],
)
def test_a_count_that_lacks_or_differs_makes_a_window_wrong(
    found: list[Written], appended: bool
) -> None:
    assert judge(TRUTH, found, appended) == Verdict(1, 1, 1, [])


def test_what_comes_twice_is_wrong_where_rows_are_final() -> None:
    assert judge(TRUTH, RIGHT + RIGHT, appended=True).wrong == 1
    assert judge(TRUTH, RIGHT + RIGHT, appended=False).wrong == 0


def test_a_window_that_never_came_is_missing_and_not_wrong() -> None:
    found = judge(TRUTH, [], appended=True)
    assert found == Verdict(1, 0, 0, [])
    assert not found.complete


def test_windows_without_rows_are_not_expected_and_wrong_if_they_come() -> None:
    nothing: WindowRows = {END: Counter()}
    assert judge(nothing, [], appended=True) == Verdict()
    found = judge(nothing, rows((3.1, "a", 1)), appended=True)
    assert (found.expected, found.emitted, found.wrong) == (0, 1, 1)


def test_other_windows_do_not_count() -> None:
    others = rows((9.0, "a", 7), end_us=2 * END)
    assert judge(TRUTH, RIGHT + others, appended=True) == Verdict(1, 1, 0, [0.5])


def test_verdicts_of_queries_add_up() -> None:
    total = Verdict()
    for found in (RIGHT, [], rows((3.4, "a", 9))):
        total.add(judge(TRUTH, found, appended=True))
    assert total == Verdict(3, 2, 1, [0.5])
    assert not total.complete
