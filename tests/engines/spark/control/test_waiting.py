"""Why a query waits now, in a sentence."""

import pytest

from slackwater import policies
from slackwater.core import Deadlines, InputStream, QuerySpec, QueryState, Window
from slackwater.core.model import Prospect
from slackwater.engines.spark.control.waiting import why_held
from slackwater.policies import Policy
from tests.policies.fleet_script import START, Scripted, run, windows

pytestmark = pytest.mark.usefixtures("utc")


def told(policy: Policy, queries: list[Scripted], now_s: float, free_slots: int) -> dict[str, str]:
    waiting = [query.state for query in queries if query.state.phase == "waiting"]
    return why_held(waiting, policy.prospects(now_s), free_slots, now_s)


@pytest.mark.parametrize("name", ["klink", "klink-paper"])
def test_a_window_is_waited_for_until_its_end(name: str) -> None:
    policy, windowed = policies.load(name), Scripted(QuerySpec("w", 1.0, 900.0, windows(60.0)))
    run(policy, [windowed], 30)
    # 10,000 s are 02:46:40, and the next minute ends at 02:48:00, with a delay of 0.3 s.
    assert told(policy, [windowed], START + 30, 3) == {
        "w": "held until 02:48:00 (its window's end)"
    }


def test_a_late_watermark_is_told_apart_from_the_window_s_end() -> None:
    long = Deadlines((Window("tumbling", 60.0, 60.0),), (InputStream("feed", "t", 20.0),))
    policy, windowed = policies.load("klink"), Scripted(QuerySpec("w", 1.0, 900.0, long))
    run(policy, [windowed], 70)
    assert told(policy, [windowed], START + 70, 3) == {
        "w": "held until 02:48:20 (its window ends at 02:48:00)"
    }


def test_a_refresh_is_told_with_its_time() -> None:
    policy = policies.load("klink")
    plain = Scripted(QuerySpec("plain", max_wait_s=900.0, target_s=60.0))
    run(policy, [plain], 20)
    (reason,) = told(policy, [plain], START + 20, 3).values()
    assert reason.startswith("next refresh in 3")
    assert reason.endswith(" s")


def test_a_silent_source_is_named() -> None:
    def silent(since_s: float, now_s: float) -> bool:
        return False

    policy = policies.load("klink")
    dry = Scripted(QuerySpec("dry", max_wait_s=900.0), arrives=silent)
    run(policy, [dry], 30)
    now_s = START + 30
    while dry.state.phase != "waiting":
        now_s += 0.02
        dry.end(now_s)
    (reason,) = told(policy, [dry], now_s, 3).values()
    assert reason.startswith("its source is silent, looked at again in ")


def test_without_a_slot_those_ahead_are_counted() -> None:
    policy = policies.load("klink")
    queries = [Scripted(QuerySpec(f"q{n}", priority=4.0 - n, max_wait_s=900.0)) for n in range(4)]
    run(policy, queries, 0.05, slots=1)
    found = told(policy, queries, START + 0.04, 0)
    assert found == {
        "q1": "next in line, no slot free",
        "q2": "behind 1 other, no slot free",
        "q3": "behind 2 others, no slot free",
    }


def test_a_policy_that_says_nothing_is_told_by_its_slots() -> None:
    waiting = [QueryState(QuerySpec(name), "waiting") for name in "abc"]
    assert why_held(waiting, {}, 0, 1.0)["a"] == "no slot free, 2 others wait too"
    assert why_held(waiting, {}, 1, 1.0)["a"] == "the policy has not let it in yet"


def test_what_holds_it_whatever_the_policy() -> None:
    window = Deadlines((Window("tumbling", 10.0, 10.0),), (InputStream("feed", "t", 0.0),))
    kept = QueryState(QuerySpec("kept", deadlines=window, keep_open_s=5.0), "waiting")
    paced = QueryState(QuerySpec("paced", pace_s=3.0), "waiting", admitted_s=100.0)
    found = why_held([kept, paced], {}, 1, 101.0)
    assert found["kept"] == "held until 00:01:45 (its window is kept open for late rows)"
    assert found["paced"].startswith("next batch in 2.0 s")


def test_the_longest_wait_goes_before_what_is_due_later() -> None:
    waiting = [QueryState(QuerySpec("q"), "waiting", 100.0)]
    prospects = {"q": Prospect("window", due_s=500.0, overdue_s=105.0, window_end_s=499.0)}
    found = why_held(waiting, prospects, 1, 101.0)
    assert found == {"q": "held until 00:01:45 (half of its longest wait)"}
