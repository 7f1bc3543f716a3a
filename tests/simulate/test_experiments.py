"""Every experiment runs, and its result has what the table and the page need."""

import json
from pathlib import Path

import pytest

from slackwater.bench.report.panels import write_panels
from slackwater.simulate import experiments
from slackwater.simulate.commands import described, rows_table
from slackwater.simulate.experiment import Options, trials
from slackwater.simulate.fleets import SHAPES, fleet, synthetic
from slackwater.simulate.trial import Trial, run

SMALL = {
    "latency": Options(queries=(2, 3), seconds=8, workloads=("ysb",), cores=2),
    "resources": Options(queries=(2,), seconds=30, cores=2),
    "nodes": Options(queries=(8,), seconds=25, cores=2, policies=("fcfs", "klink")),
    "estimators": Options(),
    "throughput": Options(queries=(2,), seconds=6, cores=2, policies=("fcfs", "klink")),
    "sensitivity": Options(queries=(2,), seconds=30, cores=2),
    "levels": Options(seconds=6),
    "scale": Options(queries=(100,), seconds=5, policies=("fcfs",)),
}


def test_all_experiments_are_known() -> None:
    assert set(experiments.names()) == set(SMALL)


@pytest.mark.parametrize("name", sorted(SMALL))
def test_an_experiment_gives_rows_panels_and_a_page(name: str, tmp_path: Path) -> None:
    experiment = experiments.load(name)
    said: list[str] = []
    result = experiment.run(SMALL[name], said.append)
    result |= described(experiment, SMALL[name])
    assert said
    assert rows_table(result).row_count == len(result["rows"]) > 0
    assert all(set(result["columns"]) <= set(row) for row in result["rows"])
    assert any(points for panel in result["panels"] for points in panel["series"].values())
    assert "NaN" not in json.dumps(result["panels"])
    page = write_panels(result, tmp_path).read_text()
    assert page.count("<figure") == len(result["panels"])


def test_all_policies_are_compared_under_the_same_conditions() -> None:
    base = Trial("klink", seconds=5)
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
    trial = Trial("klink", queries=4, seconds=10, warmup_s=2, cores=2)
    first, second = run(trial), run(trial)
    assert first.latencies_s.tolist() == second.latencies_s.tolist()
