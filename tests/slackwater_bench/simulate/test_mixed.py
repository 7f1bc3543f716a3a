"""The mixed fleet in the simulator: every kind is there and is judged."""

import pytest

from slackwater_bench.simulate.mixed_fleet import KINDS, mixed_fleet
from slackwater_bench.simulate.mixed_trial import MixedSimulation, simulate_mixed

POLICIES = ["spark", "fcfs", "klink-paper", "klink"]


@pytest.mark.parametrize("queries", [9, 25, 500])
def test_a_fleet_has_so_many_queries_with_names_of_their_own(queries: int) -> None:
    found = [query.name for kind in mixed_fleet(queries).values() for query in kind]
    assert len(found) == len(set(found)) == queries


@pytest.mark.parametrize("policy", POLICIES)
def test_every_kind_is_judged(policy: str) -> None:
    trial = MixedSimulation(policy, queries=12, cores=2, seconds=65.0, warmup_s=20.0)
    rows = {row["kind"]: row for row in simulate_mixed(trial)}
    assert rows.keys() == {kind.name for kind in KINDS}
    for name, row in rows.items():
        if name == "silent":
            assert (row["mean_s"], row["batches"]) == (None, 0)
            continue
        assert row["mean_s"] > (row["source_s"] or 0.0)
        assert row["mean_s"] <= row["p99_s"]
        assert row["batches"] > 0
        assert (row["kept"] is None) == (row["target_s"] is None)
        assert 0 < row["busy"] <= 1
    assert rows["slow sink"]["mean_s"] > 4.0


def test_the_same_seed_gives_the_same_rows() -> None:
    trial = MixedSimulation("klink", queries=12, cores=2, seconds=20.0, warmup_s=5.0)
    first, second = simulate_mixed(trial), simulate_mixed(trial)
    assert [r | {"took_s": 0} for r in first] == [r | {"took_s": 0} for r in second]


def test_klink_takes_fewer_batches_of_windows_and_less_time() -> None:
    trials = [MixedSimulation(p, queries=25, cores=2, seconds=45.0) for p in ("spark", "klink")]
    spark, klink = ({row["kind"]: row for row in simulate_mixed(trial)} for trial in trials)
    for kind in ("windows of 10 s", "1 min every 20 s"):
        assert klink[kind]["batches"] < spark[kind]["batches"] / 2
        assert klink[kind]["mean_s"] < spark[kind]["mean_s"]
