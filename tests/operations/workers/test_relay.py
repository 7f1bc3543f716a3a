"""Who hears what of whom."""

from typing import Any

from slackwater.operations.workers.messages import QueryReport
from slackwater.operations.workers.model import Placed, Wanted
from slackwater.operations.workers.relay import relayed

QUERIES = {
    each.name: Placed(each, "running", worker)
    for each, worker in (
        (Wanted("source"), "w1"),
        (Wanted("middle", reads=("source",)), "w2"),
        (Wanted("sink-0", task="sink", reads=("middle",)), "w1"),
        (Wanted("sink-1", task="sink", reads=("middle",)), "w3"),
        (Wanted("other"), "w3"),
    )
}


def part(**more: Any) -> QueryReport:
    told = {"windows": [], "delay_s": 0.0, "cost": [0.1, 0.0], "frontiers": [], **more}
    return QueryReport(part=told)


def test_only_neighbours_hear() -> None:
    told = list(relayed(QUERIES, {"middle": part(frontiers=[[5.0, 6.0]])}))
    assert [(each.worker, each.message["query"]) for each in told] == [
        ("w1", "source"),
        ("w1", "sink-0"),
        ("w3", "sink-1"),
    ]
    assert "cost" in told[0].message
    assert "frontiers" not in told[0].message
    assert told[1].message["frontiers"] == [[5.0, 6.0]]


def test_who_says_nothing_new_and_who_is_not_known_is_passed_over() -> None:
    assert list(relayed(QUERIES, {"source": part(), "gone": part(), "other": QueryReport()})) == []
