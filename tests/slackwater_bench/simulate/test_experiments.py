"""Every experiment runs, and its result has what the table and the page need."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import UsageError
from slackwater.report.panels import write_panels
from slackwater_bench.simulate import experiments, figures
from slackwater_bench.simulate.experiment import trials
from slackwater_bench.simulate.fleets import SHAPES, fleet, synthetic
from slackwater_bench.simulate.trial import SimulatedTrial, run

SMALL: dict[str, dict[str, Any]] = {
    "latency": {"queries": (2, 3), "seconds": 8, "cores": (2,)},
    "resources": {"queries": (2,), "seconds": 30, "cores": (2,)},
    "nodes": {
        "queries": (4,),
        "nodes": (1, 2),
        "seconds": 25,
        "cores": (2,),
        "policies": ("fcfs", "klink"),
    },
    "estimators": {"delays": ("uniform:0:300ms",)},
    "throughput": {
        "workloads": ("ysb", "nyc-taxi"),
        "queries": (2,),
        "seconds": 40,
        "cores": (2,),
        "policies": ("fcfs", "klink"),
    },
    "sensitivity": {"queries": (2,), "seconds": 30, "cores": (2,)},
    "levels": {"seconds": 3},
    "mixed": {"queries": (25,), "seconds": 25, "cores": (1, 2), "policies": ("spark", "klink")},
    "scale": {"queries": (100,), "seconds": 5, "policies": ("fcfs",)},
}


@cache
def small(name: str) -> tuple[dict[str, Any], list[str]]:
    """Return the result of a small run of an experiment and what it said."""
    experiment = experiments.load(name)
    said: list[str] = []
    return experiment.run(experiment.settings(**SMALL[name]), said.append), said


def test_all_experiments_are_known() -> None:
    assert set(experiments.names()) == set(SMALL)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_an_experiment_gives_rows_panels_and_a_page(name: str, tmp_path: Path) -> None:
    result, said = small(name)
    assert said
    assert figures.table(result).row_count == len(result["rows"]) > 0
    assert all(set(result["columns"]) <= set(row) for row in result["rows"])
    assert any(points for panel in result["panels"] for points in panel["series"].values())
    assert "NaN" not in json.dumps(result["panels"])
    page = write_panels(
        result, figures.headings(result), figures.cells(result), tmp_path
    ).read_text()
    assert page.count("<figure") == len(result["panels"])
    assert page.count("<tr>") == len(result["rows"]) + 1  # and the headings
    settings = page.partition("<h2>Settings</h2>")[2]
    assert set(re.findall(r"<dt>(.*?)</dt>", settings)) == set(experiments.load(name).uses.split())
    assert "none" not in settings  # what a user left open is shown as it was


def test_every_workload_has_a_panel_of_its_throughput() -> None:
    result, _ = small("throughput")
    titles = [panel["title"] for panel in result["panels"]]
    assert len(titles) == len(set(titles)) == 6
    for panel in result["panels"]:
        assert {name: len(points) for name, points in panel["series"].items()} == {
            "fcfs": 7,
            "klink": 7,
        }


def test_an_experiment_refuses_what_it_does_not_use() -> None:
    with pytest.raises(UsageError, match="estimators does not take --cores"):
        experiments.load("estimators").settings(cores=(2,))
    with pytest.raises(UsageError, match="latency takes one number of --cores"):
        experiments.load("latency").settings(cores=(2, 4))
    with pytest.raises(UsageError, match="names no arrivals"):
        experiments.load("latency").settings(arrivals="in waves")


def test_all_policies_are_compared_under_the_same_conditions() -> None:
    base = SimulatedTrial("klink", seconds=5)
    found = list(trials(base, 2, policy=("fcfs", "klink"), queries=(4, 8)))
    assert len(found) == 8
    assert {(t.policy, t.queries, t.seed) for t in found} == {
        (policy, count, seed) for policy in ("fcfs", "klink") for count in (4, 8) for seed in (1, 2)
    }


@pytest.mark.parametrize("workload", sorted(SHAPES))
def test_eighty_queries_take_79_percent_of_24_cores(workload: str) -> None:
    queries = fleet(workload, 80)
    assert sum(q.rate * q.work_s.sum() for q in queries) / 24 == pytest.approx(0.79, abs=0.01)


def test_synthetic_queries_take_the_load_asked_for() -> None:
    queries = synthetic(20, cores=4, load=0.9, blocking=0.3, seed=2)
    assert sum(q.rate * q.work_s.sum() for q in queries) == pytest.approx(3.6)
    blocked = [o.blocked_s > 0 for q in queries for o in q.operators]
    assert 0.1 < sum(blocked) / len(blocked) < 0.5


def test_the_same_seed_gives_the_same_latencies() -> None:
    trial = SimulatedTrial("klink", queries=4, seconds=10, warmup_s=2, cores=2)
    first, second = run(trial), run(trial)
    assert first.latencies_s.tolist() == second.latencies_s.tolist()


@pytest.mark.parametrize("arrivals", ["bursts:3:2s:8s", "bursts:1.5:1s:3s"])
def test_bursts_make_results_later_not_fewer(arrivals: str) -> None:
    even = SimulatedTrial("fcfs", queries=8, seconds=40, warmup_s=25, cores=2, cold=False)
    bursty = replace(even, arrivals=arrivals)
    smooth, rough = run(even), run(bursty)
    assert len(rough.latencies_s) == pytest.approx(len(smooth.latencies_s), abs=8)
    assert rough.latencies_s.mean() > smooth.latencies_s.mean()


def test_an_uneven_fleet_takes_as_much_as_an_even_one() -> None:
    even, uneven = fleet("ysb", 40), fleet("ysb", 40, uneven=4.0)
    work = [sum(q.rate * q.work_s.sum() for q in some) for some in (even, uneven)]
    assert work[0] == pytest.approx(work[1])
    assert sum(q.operators[-1].cost_s > even[0].operators[-1].cost_s for q in uneven) == 4
    with pytest.raises(UsageError, match="uneven must stay below 10"):
        fleet("ysb", 40, uneven=10.0)
