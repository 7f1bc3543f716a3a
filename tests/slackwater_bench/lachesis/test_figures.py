"""Figures and page of a run, from scripted slices; a real run is `test_run`."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.core.entities import Operator, Reading
from slackwater.core.errors import UsageError
from slackwater.operations.middleware.file import load
from slackwater_bench.lachesis.comparison import configuration
from slackwater_bench.lachesis.figures import against_default, arms_of, table
from slackwater_bench.lachesis.observer import latency, rows_of, tallied
from slackwater_bench.lachesis.report import write_lachesis_report
from slackwater_bench.lachesis.settings import LachesisSettings
from slackwater_bench.lachesis.spark_application import Tally


def run(arm: str, number: int, factor: float) -> dict[str, Any]:
    values = [10.0 * factor * (1 + number), 12.0 * factor * (1 + number)]
    engine = {
        "spread": values,
        "middle": values,
        "queued": values,
        "oldest_s": values,
        "latency_s": values,
        "sizes": values * 30,
        "rows_per_s": {"in": 100.0, "out": 50.0},
    }
    middleware = {} if arm == "os" else {"cpu_share": 0.02}
    return {"arm": arm, "round": number, "engines": {"flink": engine}, "middleware": middleware}


@pytest.fixture
def result() -> dict[str, Any]:
    runs = [run(arm, n, f) for n in range(3) for arm, f in (("os", 1.0), ("queue-size", 0.5))]
    return {"settings": {"engine": "flink"}, "runs": runs}


def test_rounds_are_paired_so_that_slow_ones_cancel_out(result: dict[str, Any]) -> None:
    arms = arms_of(result)
    ratio = against_default(arms[1], arms, "spread")
    assert ratio is not None
    assert [round(each, 6) for each in ratio] == [0.5, 0.5, 0.5]
    assert against_default(arms[0], arms, "spread") is None


def test_the_table_marks_what_a_policy_is_after(result: dict[str, Any]) -> None:
    found = table(result)
    assert found.row_count == 2
    spread = found.columns[2]
    assert [text.endswith("*") for text in spread.cells] == [False, True]  # type: ignore[union-attr]


def test_the_page_has_every_plot(result: dict[str, Any], tmp_path: Path) -> None:
    page = write_lachesis_report(result, tmp_path).read_text()
    for plot in ("flink-spread", "flink-latency-s", "flink-in", "flink-sizes", "cpu"):
        assert f'id="{plot}"' in page


def test_results_count_by_how_many_a_query_gave() -> None:
    operators = (
        Operator("s", "q", downstream=("a",), source=True),
        Operator("a", "q"),
        Operator("b", "p"),
    )
    early = Reading(0, operators, {"tuples-in": {"a": 0, "b": 0}, "tuples-out": {"s": 0}})
    late = Reading(1, operators, {"tuples-in": {"a": 30, "b": 10}, "tuples-out": {"s": 50}})
    before, after = rows_of(early), rows_of(late)
    assert (after["in"], after["out"]) == (50, 40)
    assert latency(late, {"a": 1.0, "b": 5.0}, before, after) == 2.0
    assert latency(late, {"a": 1.0, "b": 5.0}, after, after) is None


def test_what_the_middleware_gets_is_a_file_that_it_takes(tmp_path: Path) -> None:
    settings = LachesisSettings(translator_parameters={"best": -5}, period_s=0.05)
    path = tmp_path / "m.toml"
    sections = {
        "flink": {"flink": {"driver": "flink", "rest": "http://127.0.0.1:1"}},
        "spark": {f"spark-{n}": {"driver": "spark", "pid": n} for n in (1, 2)},
    }
    path.write_text(configuration(settings, "fcfs", sections))
    policies = load(path).policies
    assert policies["spark"].engines == ["spark-1", "spark-2"], "rows of Flink are not theirs"
    assert policies["flink"].translator_parameters == {"best": -5}
    assert policies["flink"].period == 0.05


@pytest.mark.parametrize(
    "wrong",
    [
        {"engine": "storm"},
        {"workload": "x"},
        {"settle_s": 20.0, "slice_s": 20.0},
        {"blocking": True, "engine": "flink"},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        LachesisSettings(**wrong)


def test_an_application_tallies_rows_and_when_they_were_done(tmp_path: Path) -> None:
    """The second batch took 1 s from 2 s on; its rows came between 0 and 2 s: 2 s on average."""
    tally = Tally(tmp_path / "tally.json")
    for second, took_ms, rows in ((0, 500, 10), (2, 1000, 40), (3, 100, 0)):
        progress = SimpleNamespace(
            name="q",
            timestamp=f"2026-01-01T00:00:0{second}.000Z",
            numInputRows=rows,
            durationMs={"triggerExecution": took_ms},
        )
        tally.onQueryProgress(SimpleNamespace(progress=progress))  # type: ignore[arg-type]
    found = tallied([tmp_path / "tally.json"])
    assert found["out"] == 50
    assert found["latency"] == pytest.approx(10 * 0.5 + 40 * 2.0)
    assert tallied([tmp_path / "nothing.json"])["out"] == 0
