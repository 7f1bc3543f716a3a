"""Where queries go, and what becomes of them when workers die."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.operations.workers.messages import QueryCost, QueryReport, WorkerReport
from slackwater.operations.workers.placement import ANSWER_S, Directive, Placement, Wanted
from slackwater.quality import QualityController, WarmUps


def placement(*names: str, **kinds: Any) -> Placement:
    wanted = [kinds.get(name, Wanted(name)) for name in names]
    return Placement(wanted, QualityController(warmups=WarmUps(limit_s=5)), Random(1))


def report(used: float = 0.0, others: float = 0.0, **queries: QueryCost | None) -> WorkerReport:
    return WorkerReport(used, others, {name: QueryReport(cost) for name, cost in queries.items()})


def cost(full: float, current: float = 1.0) -> QueryCost:
    return QueryCost(fixed=0.0, slope=full, most=4.0, current=current)


def test_a_new_query_goes_where_most_is_free_others_on_the_machine_counted() -> None:
    fleet = placement("q")
    fleet.joined("w1", 4)
    fleet.joined("w2", 4)
    fleet.reported("w1", report(used=1.0, others=2.5), 0)
    fleet.reported("w2", report(used=2.0), 0)
    assert fleet.place_all(0) == [Directive("w2", "start", "q")]


def test_queries_that_are_not_measured_yet_count_as_a_core() -> None:
    fleet = placement("a", "b", "c")
    fleet.joined("w1", 2)
    fleet.joined("w2", 1.5)
    placed = [directive.worker for directive in fleet.place_all(0)]
    assert placed == ["w1", "w2", "w1"]


def test_where_it_wants_to_be_is_honoured_while_it_fits() -> None:
    fleet = placement("a", "b", a=Wanted("a", prefers=("w2",)), b=Wanted("b", prefers=("w2",)))
    fleet.joined("w1", 8)
    fleet.joined("w2", 1.5)
    assert [each.worker for each in fleet.place_all(0)] == ["w2", "w1"]


def test_queries_of_a_dead_worker_are_placed_again() -> None:
    fleet = placement("a", "b")
    fleet.joined("w1", 4)
    fleet.place_all(0)
    fleet.reported("w1", report(a=None, b=None), 1)
    fleet.lost("w1")
    assert fleet.place_all(2) == []
    fleet.joined("w2", 4)
    assert {each.query for each in fleet.place_all(3)} == {"a", "b"}


def test_a_new_supervisor_adopts_what_runs_and_starts_nothing_twice() -> None:
    fleet = placement("a", "b")
    fleet.joined("w1", 4)
    assert fleet.reported("w1", report(a=None), 0) == []
    assert [each.query for each in fleet.place_all(0)] == ["b"]


def test_a_query_that_runs_on_two_workers_is_stopped_on_one() -> None:
    fleet = placement("a")
    fleet.joined("w1", 4)
    fleet.joined("w2", 4)
    fleet.reported("w1", report(a=None), 0)
    assert fleet.reported("w2", report(a=None), 0) == [Directive("w2", "stop", "a")]


def test_a_query_that_nobody_wants_is_stopped() -> None:
    fleet = placement("a")
    fleet.joined("w1", 4)
    assert fleet.reported("w1", report(old=None), 0) == [Directive("w1", "stop", "old")]


def moving() -> Placement:
    fleet = placement("low", "high", low=Wanted("low", 1, 0.8), high=Wanted("high", 2, 0.8))
    fleet.joined("w1", 1)
    fleet.joined("w2", 1)
    fleet.reported("w1", report(low=cost(0.9), high=cost(0.9)), 0)
    fleet.reported("w2", report(), 0)
    return fleet


def test_a_query_moves_when_the_minimums_do_not_fit_and_starts_only_when_it_has_stopped() -> None:
    fleet = moving()
    assert without_aims(fleet.control(100)) == [Directive("w1", "stop", "low")]
    assert fleet.place_all(101) == []
    assert fleet.queries["low"].phase == "moving"
    fleet.ended("w1", "low", None, 102)
    assert fleet.place_all(102) == [Directive("w2", "start", "low")]


def test_a_worker_that_dies_while_a_query_leaves_it_does_not_keep_it() -> None:
    fleet = moving()
    fleet.control(100)
    fleet.lost("w1")
    assert {(each.query, each.worker) for each in fleet.place_all(101)} >= {("low", "w2")}


def test_what_was_not_heard_is_said_again() -> None:
    fleet = placement("a")
    fleet.joined("w1", 4)
    first = fleet.place_all(0)
    assert fleet.place_all(1) == []
    assert fleet.place_all(ANSWER_S + 1) == first


@pytest.mark.parametrize("seen", [False, True])
def test_a_query_that_fails_is_tried_again_more_and_more_slowly_and_then_given_up(
    seen: bool,
) -> None:
    """Also where its worker had it for a moment before it broke."""
    fleet = placement("a")
    fleet.joined("w1", 4)
    now_s, starts = 0.0, 0
    while fleet.queries["a"].phase != "failed":
        for _ in fleet.place_all(now_s):
            starts += 1
            if seen:
                fleet.reported("w1", report(a=None), now_s)
            fleet.ended("w1", "a", "it broke", now_s)
            fleet.reported("w1", report(), now_s)
        now_s += 1
        assert now_s < 1000
    assert (starts, fleet.queries["a"].error) == (5, "it broke")


def test_minimums_that_no_worker_has_room_for_stop_the_least_important() -> None:
    fleet = moving()
    fleet.lost("w2")
    assert without_aims(fleet.control(100)) == [Directive("w1", "stop", "low")]
    fleet.ended("w1", "low", None, 101)
    assert fleet.queries["low"].phase == "stopped"
    assert "minimum accuracy" in (fleet.queries["low"].error or "")


@given(st.lists(st.sampled_from(["join", "die", "report", "fail", "wait"]), max_size=40), st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_happens_no_query_is_ever_started_where_another_still_has_it(
    events: list[str], data: st.DataObject
) -> None:
    """Workers do as they are told, late or not at all; a query runs at most once."""
    fleet = placement("a", "b", "c")
    running: dict[str, set[str]] = {}  # worker → queries
    now_s = 0.0

    def obey(directives: list[Directive]) -> None:
        for each in directives:
            mine = running.get(each.worker)
            if mine is None:
                continue
            if each.op == "start":
                elsewhere = [w for w, queries in running.items() if each.query in queries]
                assert elsewhere in ([], [each.worker])
                mine.add(each.query)
            else:
                mine.discard(each.query)
                fleet.ended(each.worker, each.query, None, now_s)

    for event in events:
        now_s += 7
        names = sorted(running)
        if event == "join":
            name = f"w{len(running)}-{now_s:g}"
            running[name] = set()
            fleet.joined(name, 2)
        elif names:
            name = data.draw(st.sampled_from(names))
            if event == "die":
                del running[name]
                fleet.lost(name)
            elif event == "report":
                obey(fleet.reported(name, report(**dict.fromkeys(running[name])), now_s))
            elif event == "fail" and running[name]:
                query = data.draw(st.sampled_from(sorted(running[name])))
                running[name].discard(query)
                fleet.ended(name, query, "failed", now_s)
        obey(fleet.place_all(now_s))
    if running and all(q.phase != "failed" for q in fleet.queries.values()):
        for _ in range(12):
            now_s += 31
            obey(fleet.place_all(now_s))
        assert sorted(q for queries in running.values() for q in queries) == ["a", "b", "c"]


def test_queries_that_are_added_are_placed_and_those_taken_away_stop() -> None:
    fleet = placement("a", "b")
    fleet.joined("w1", 4)
    fleet.place_all(0)
    fleet.reported("w1", report(a=None, b=None), 1)
    assert fleet.want([Wanted("a"), Wanted("c")], 1) == [Directive("w1", "stop", "b")]
    assert fleet.place_all(2) == [Directive("w1", "start", "c")]
    fleet.ended("w1", "b", None, 3)
    assert fleet.place_all(4) == []


def without_aims(directives: list[Directive]) -> list[Directive]:
    return [each for each in directives if each.op != "aim"]


def application() -> Placement:
    """A source into two queries, the second with two instances, on two workers."""
    fleet = placement(
        "source",
        "light",
        "heavy-1",
        "heavy-2",
        source=Wanted("source", min_accuracy=0.0),  # what its queries need counts
        light=Wanted("light", 5, 0.2, reads=("source",)),
        **{
            f"heavy-{n}": Wanted(f"heavy-{n}", 1, 0.2, task="heavy", reads=("source",))
            for n in (1, 2)
        },
    )
    fleet.joined("w1", 1)
    fleet.joined("w2", 1)
    heavy = cost(1.2)
    fleet.reported("w1", report(**{"source": cost(0.1), "light": cost(0.3), "heavy-1": heavy}), 0)
    fleet.reported("w2", report(**{"heavy-2": heavy}), 0)
    return fleet


def test_instances_share_a_rate_and_rows_are_dropped_where_nobody_wants_them() -> None:
    aims = {each.query: each.accuracy for each in application().control(100)}
    assert aims["source"] == 1.0  # the light query wants all
    assert aims["light"] == 1.0
    assert aims["heavy-1"] == aims["heavy-2"] == pytest.approx(0.5, abs=0.01)


def test_a_burst_leaves_the_minimum_of_what_the_application_gets() -> None:
    fleet = application()
    for name in ("light", "heavy-1", "heavy-2"):
        fleet.queries[name].wanted = replace(fleet.queries[name].wanted, priority=1)
    fleet.reported("w1", report(**{"source": cost(0.9), "light": cost(0.9)}), 0)
    found = {each.query: each for each in fleet.control(100) if each.op == "aim"}
    assert found["source"].least == pytest.approx(0.2)
    assert found["light"].least == 1.0, "the source may be at its minimum by then"


def test_what_a_source_was_seen_to_shed_is_not_shed_again() -> None:
    fleet = application()
    fleet.reported("w1", report(source=cost(0.1, current=0.25), light=cost(0.3)), 0)
    found = {each.query: each for each in fleet.control(100) if each.op == "aim"}
    assert found["heavy-2"].accuracy == pytest.approx(0.8), "0.2 of 0.25"


def test_what_reaches_a_query_through_a_shed_source_counts_as_that_part_only() -> None:
    fleet = application()
    halved = cost(0.1, current=0.5)
    fleet.reported("w1", report(**{"source": halved, "light": cost(0.15), "heavy-1": cost(0.6)}), 0)
    fleet.reported("w2", report(**{"heavy-2": cost(0.6)}), 0)
    aims = {each.query: each.accuracy for each in fleet.control(100)}
    # At half its input a heavy instance needed 0.6 cores: at all of it 1.2, as above.
    assert aims["heavy-1"] == pytest.approx(0.5, abs=0.02)


def test_a_query_that_may_not_be_shed_is_left_alone_and_its_cpu_is_not_given_away() -> None:
    fleet = placement("plain", "shed", shed=Wanted("shed", 9, 0.1))
    fleet.joined("w1", 1)
    fleet.reported("w1", report(plain=cost(0.6), shed=cost(0.8)), 0)
    for now_s in range(100, 200, 2):
        assert fleet.control(now_s) == [Directive("w1", "aim", "shed", pytest.approx(0.5), 0.1)]


def test_a_query_moves_to_where_its_user_wants_it_now_while_it_fits() -> None:
    fleet = placement("a")
    for worker, cores in (("w1", 4), ("w2", 1), ("w3", 3)):
        fleet.joined(worker, cores)
        fleet.reported(worker, report(), 0)
    fleet.reported("w1", report(a=cost(2.0)), 0)
    assert fleet.want([Wanted("a", prefers=("w2",))], 1) == []
    assert fleet.want([Wanted("a", prefers=("w2", "w3"))], 1) == [Directive("w1", "stop", "a")]
    fleet.ended("w1", "a", None, 2)
    assert fleet.place_all(2) == [Directive("w3", "start", "a")]


def test_nothing_stops_while_somebody_is_on_the_way_or_not_measured() -> None:
    fleet = placement("low", "high", low=Wanted("low", 1, 0.5), high=Wanted("high", 2, 0.9))
    fleet.joined("w1", 1)
    fleet.reported("w1", report(high=cost(1.05), low=None), 0)
    for now_s in range(2, 50, 2):
        assert without_aims(fleet.control(now_s)) == []
    cold = QueryCost(fixed=0.0, slope=0.5, most=4.0, current=1.0, batches=2)
    fleet.reported("w1", report(high=cost(1.05), low=cold), 50)
    for now_s in range(52, 100, 2):
        assert without_aims(fleet.control(now_s)) == [], "it costs less when it is warm"
    fleet.reported("w1", report(high=cost(1.05), low=cost(0.5)), 100)
    assert without_aims(fleet.control(101)) == [Directive("w1", "stop", "low")]


def test_a_query_without_rows_keeps_nothing_from_moving_for_ever() -> None:
    fleet = moving()
    fleet.want([each.wanted for each in fleet.queries.values()] + [Wanted("idle", 1, 0.5)], 0)
    fleet.reported("w2", report(idle=None), 0)
    assert without_aims(fleet.control(10)) == []
    assert without_aims(fleet.control(100)) == [Directive("w1", "stop", "low")]


def test_two_that_were_stopped_come_back_to_two_workers() -> None:
    names = [f"low-{n}" for n in (0, 1)]
    both = {name: Wanted(name, 1, 0.5, task="low") for name in names}
    fleet = placement(*names, "main", main=Wanted("main", 2, 1.0), **both)
    fleet.joined("w1", 1)
    fleet.reported("w1", report(main=cost(0.9), **dict.fromkeys(names, cost(0.8))), 0)
    assert {each.query for each in without_aims(fleet.control(100))} == {*names}
    for name in names:
        fleet.ended("w1", name, None, 101)
    fleet.reported("w1", report(main=cost(0.1), used=0.1), 102)
    fleet.joined("w2", 1)
    fleet.reported("w2", report(), 102)
    fleet.control(103)
    assert {each.worker for each in fleet.place_all(104)} == {"w1", "w2"}


def crowded() -> Placement:
    """A query behind a source, and a more important one beside it, on one core."""
    fleet = placement(
        "source",
        "sink",
        "main",
        source=Wanted("source", 1, 0.0),
        sink=Wanted("sink", 1, 0.8, reads=("source",)),
        main=Wanted("main", 2, 1.0),
    )
    fleet.joined("w1", 1)
    return fleet


def test_what_was_stopped_for_want_of_cpu_comes_back_when_load_falls() -> None:
    fleet = crowded()

    def told(now_s: float, rate: float, **queries: QueryCost) -> None:
        shown = report(**queries)
        shown.queries["source"] = QueryReport(queries["source"], rate=rate)
        fleet.reported("w1", shown, now_s)

    told(0, 1000.0, source=cost(0.05), sink=cost(0.6), main=cost(0.6))
    assert without_aims(fleet.control(100)) == [Directive("w1", "stop", "sink")]
    fleet.ended("w1", "sink", None, 101)
    told(102, 1000.0, source=cost(0.05), main=cost(0.6))
    for now_s in range(104, 150, 2):
        assert without_aims(fleet.control(now_s)) == []
        assert fleet.queries["sink"].phase == "stopped"
    told(150, 300.0, source=cost(0.05), main=cost(0.6))
    fleet.control(152)
    assert [each.query for each in fleet.place_all(153)] == ["sink"]


def test_decisions_do_not_swing_because_logs_are_behind_their_sources() -> None:
    """What a source sheds from now on is seen at its readers three looks later."""
    fleet = application()
    fleet.queries["light"].wanted = Wanted("light", 1, 0.2, reads=("source",))
    kept, decided = [1.0] * 4, []
    for now_s in range(100, 200, 2):
        late, now = kept[-4], kept[-1]
        light, heavy = cost(0.9 * late), cost(1.2 * late)
        source = cost(0.1, current=now)
        shown = report(**{"source": source, "light": light, "heavy-1": heavy})
        shown.queries["source"] = QueryReport(source, rate=1000.0)
        fleet.reported("w1", shown, now_s)
        fleet.reported("w2", report(**{"heavy-2": heavy}), now_s)
        aims = {each.query: each.accuracy for each in fleet.control(now_s) if each.op == "aim"}
        kept.append(aims["source"] or 0.0)
        decided.append(aims["source"] or 0.0)
    assert min(decided) > 0.3
    assert decided[-1] == pytest.approx(decided[0], abs=0.01)


def test_moves_are_counted() -> None:
    fleet = moving()
    fleet.control(100)
    assert fleet.queries["low"].moves == pytest.approx(1)


def test_what_was_stopped_goes_where_there_is_room_also_when_its_worker_has_gone() -> None:
    fleet = moving()
    fleet.lost("w2")
    fleet.control(100)
    fleet.ended("w1", "low", None, 101)
    fleet.reported("w1", report(high=cost(0.9)), 102)
    fleet.control(103)
    assert fleet.queries["low"].phase == "stopped"
    fleet.joined("w3", 4)
    fleet.reported("w3", report(), 104)
    fleet.control(105)
    assert fleet.place_all(106) == [Directive("w3", "start", "low")]
    again = moving()
    again.lost("w2")
    again.control(100)
    again.ended("w1", "low", None, 101)
    again.lost("w1")
    again.joined("w4", 4)
    again.reported("w4", report(high=cost(0.9)), 102)
    again.control(103)
    assert "low" in {each.query for each in again.place_all(104)}


def test_a_source_that_is_on_the_way_is_no_reason_to_fail() -> None:
    fleet = crowded()
    fleet.reported("w1", report(source=cost(0.05), sink=cost(0.6), main=cost(0.6)), 0)
    fleet.control(100)
    fleet.ended("w1", "sink", None, 101)
    fleet.reported("w1", report(source=None, main=cost(0.6)), 102)
    fleet.control(103)
    assert fleet.queries["sink"].phase == "stopped"


def test_a_source_leaves_enough_for_a_reader_that_is_on_the_way() -> None:
    fleet = placement(
        "source",
        "low",
        "high",
        source=Wanted("source", 1, 0.0),
        low=Wanted("low", 1, 0.1, reads=("source",)),
        high=Wanted("high", 5, 0.9, reads=("source",)),
    )
    fleet.joined("w1", 1)
    shown = {"source": cost(0.3), "low": cost(2.0)}
    fleet.reported("w1", report(**shown, high=None), 0)
    (aim,) = [each for each in fleet.control(100) if each.query == "source"]
    assert aim.accuracy is not None
    assert min(aim.accuracy, aim.least or 0.0) >= 0.9


def test_a_query_that_is_taken_away_and_added_again_runs() -> None:
    fleet = placement("a")
    fleet.joined("w1", 4)
    fleet.place_all(0)
    fleet.reported("w1", report(a=cost(0.1)), 1)
    assert fleet.want([], 2) == [Directive("w1", "stop", "a")]
    fleet.want([Wanted("a")], 3)
    fleet.reported("w1", report(a=cost(0.1)), 3)
    fleet.ended("w1", "a", None, 4, ordered=True)
    fleet.reported("w1", report(), 4)
    assert fleet.place_all(5) == [Directive("w1", "start", "a")]


def test_a_query_that_moved_does_not_return_when_it_has_started() -> None:
    fleet = moving()
    fleet.control(100)
    fleet.ended("w1", "low", None, 101)
    fleet.place_all(102)
    fleet.reported("w2", report(low=cost(0.9)), 103)
    assert fleet._controller.warmups.barred(("low", 0), 110) == "w1"
