"""Which bars are met on a mixed fleet, and which are missed."""

from typing import Any

import pytest

from slackwater.report.result import BenchResult
from slackwater_bench.mixed.comparison import bars_table, table
from slackwater_bench.mixed.verdict import verdict

SECONDS = {  # of 10 s windows, whose source makes 1 s, and of dashboards; CPU
    "spark": (9.0, 8.0, 100.0),
    "spark-trigger:2": (5.0, 4.0, 80.0),
    "klink": (1.8, 1.5, 60.0),
}


def kind(measure: str, mean_s: float, **figures: Any) -> dict[str, Any]:
    windowed = measure == "latency"
    return {
        "queries": 1,
        "measure": measure,
        "seconds": {"mean": mean_s, "p99": 2 * mean_s},
        "source_s": 1.0 if windowed else None,
        "target_s": None if windowed else 2.0,
        "kept": None if windowed else 0.995,
        "missing": 0,
        "batches": 1,
    } | figures


def run(policy: str, **changes: Any) -> dict[str, Any]:
    window_s, age_s, cpu_s = SECONDS[policy]
    return {
        "policy": policy,
        "repeat": 0,
        "seconds": 60.0,
        "queries": 2,
        "alive": 2,
        "cpu_s": cpu_s,
        "controller_cpu_s": 0.1,
        "python_cpu_s": 0.2,
        "controller_share": 0.001,
        "python_share": 0.01,
        "batches": 2,
        "heap_collected_bytes": [100, 101],
        "growth_percent": {"driver_files": 7.0, "python_rss_bytes": 1.0},
        "kinds": {
            "windows of 10 s": kind("latency", window_s),
            "dashboards (update)": kind("age", age_s),
        },
        "mistakes": {},
        "failures": {},
    } | changes


def result(*runs: dict[str, Any], **settings: Any) -> BenchResult:
    return BenchResult({"settings": {"scale": 1.0} | settings, "runs": list(runs)})


def bars(found: dict[str, Any] | None) -> dict[str, bool]:
    assert found is not None
    return {bar["bar"]: bar["met"] for bar in found["bars"]}


def test_each_kind_is_held_against_the_best_rival_above_its_source() -> None:
    found = verdict(result(*map(run, SECONDS)))
    assert found is not None
    windows, dashboards = found["kinds"].values()
    assert (windows["best"], windows["ratio"]) == ("spark-trigger:2", 0.2)
    assert (dashboards["best_s"], dashboards["ratio"]) == (4.0, 0.375)
    assert all(bars(found).values())


def test_each_arm_is_judged_above_its_own_sources() -> None:
    """They deliver once a second, in each run at another moment of it."""
    late = run("klink", kinds={"windows of 10 s": kind("latency", 1.8, source_s=1.6)})
    found = verdict(result(run("spark-trigger:2"), late))
    assert found is not None
    windows = found["kinds"]["windows of 10 s"]
    assert (windows["above_s"], windows["best_above_s"], windows["ratio"]) == (0.2, 4.0, 0.05)


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"cpu_s": 70.0}, "CPU, of the rival best at most kinds"),
        ({"alive": 1}, "queries that ended or failed"),
        ({"mistakes": {"q": ["wrong"]}}, "queries with wrong results"),
        ({"python_share": 0.02}, "Python of driver and controller, of all CPU"),
        ({"controller_share": 0.02}, "controller, of the machine"),
        ({"seconds": 600.0}, "largest growth of memory and files, %: driver_files"),
    ],
)
def test_a_bar_that_is_missed_is_named(changes: dict[str, Any], missed: str) -> None:
    found = bars(verdict(result(run("spark-trigger:2"), run("klink", **changes))))
    assert [bar for bar, met in found.items() if not met] == [missed]


def test_a_query_that_failed_and_so_ended_counts_once() -> None:
    found = verdict(result(run("klink", alive=1, failures={"q": "no such disk"})))
    assert found is not None
    (bar,) = (bar for bar in found["bars"] if bar["bar"] == "queries that ended or failed")
    assert bar["value"] == 1


def test_kinds_that_are_late_stale_or_break_promises_are_named() -> None:
    kinds = {
        "windows of 10 s": kind("latency", 2.1),
        "dashboards (update)": kind("age", 4.5, kept=0.9),
    }
    found = bars(verdict(result(run("spark-trigger:2"), run("klink", kinds=kinds))))
    assert [bar for bar, met in found.items() if not met] == [
        "windows of 10 s: of the best rival, above the source",
        "dashboards (update): of the best rival",
        "dashboards: mean age, s",
        "dashboards (update): share of the time with its target kept",
    ]


def test_ages_are_judged_by_their_targets_in_the_usual_fleet_only() -> None:
    runs = [run("spark"), run("klink")]
    assert "dashboards: mean age, s" in bars(verdict(result(*runs)))
    assert "dashboards: mean age, s" not in bars(verdict(result(*runs, scale=2.0)))
    assert "dashboards: mean age, s" not in bars(verdict(result(*runs, busy=20)))


def test_repeats_are_averaged_and_failed_runs_left_out() -> None:
    slow = run("klink", kinds={"windows of 10 s": kind("latency", 2.2)})
    failed = {"policy": "spark", "repeat": 1, "error": "no memory"}
    found = verdict(result(run("spark-trigger:2"), run("klink"), slow, failed))
    assert found is not None
    assert found["kinds"]["windows of 10 s"]["seconds"] == pytest.approx(2.0)


@pytest.mark.parametrize(("settings", "met"), [({"idle": 500}, True), ({"sinks": 6}, False)])
def test_a_fleet_is_held_against_itself_alone(settings: dict[str, Any], met: bool) -> None:
    alone = result(run("klink", kinds={"windows of 10 s": kind("latency", 1.55)}), sinks=None)
    found = bars(verdict(result(run("klink"), **settings), alone))
    assert found["windows of 10 s: of its seconds alone"] is met


def test_without_klink_there_is_no_verdict_and_the_table_still_comes() -> None:
    plain = result(run("spark"))
    assert verdict(plain) is None
    assert bars_table(plain) is None
    assert table(plain).row_count > 2


def test_the_table_shows_the_ratios_and_the_bars() -> None:
    found = result(*map(run, SECONDS))
    found["verdict"] = verdict(found)
    assert "0.20" in list(table(found).columns[-1].cells)
    shown = bars_table(found)
    assert shown is not None
    assert set(shown.columns[-1].cells) == {"met"}
