"""Reports: the page is whole, loads nothing, and survives what is missing or broken."""

import copy
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slackwater.core.errors import SlackwaterError
from slackwater.report import write_report
from slackwater.report.page import DARK, LIGHT, page
from slackwater.report.palette import COLOURS
from slackwater.report.runs import Runs

VOID = {"meta", "br", "hr", "img", "link", "input"}
PLOTS = {
    "mean-latency", "latency-bars", "latency-cdf", "slowdown", "throughput", "memory", "cpu",
    "overhead",
}  # fmt: skip
ESTIMATOR_PLOTS = {"coverage", "width"}
# Nothing in a name may become markup, mathematics, or a hidden label.
ODD = '_mine:<b>$x^2$ & "co"</b>'
POLICIES = ["spark", "klink", ODD]


def run(policy: str, repeat: int, queries: int) -> dict[str, Any]:
    """A run as a bench writes it."""
    chance = np.random.default_rng([POLICIES.index(policy), repeat, queries])
    scale = {"spark": 0.12, "klink": 0.06}.get(policy, 0.09) * queries
    latencies = 0.6 + chance.gamma(3.0, scale / 3, 10 * queries)
    cpu_s = 30 + float(chance.normal())
    return {
        "policy": policy,
        "repeat": repeat,
        "queries": queries,
        "latency_s": {"mean": float(latencies.mean())},
        "latencies_s": latencies.round(3).tolist(),
        "ideal_s": [0.5] * len(latencies),
        "watermark_delay_s": 0.3,
        "windows": {"expected": len(latencies), "emitted": len(latencies), "wrong": 0},
        "events": 1000 * queries * 30,
        "throughput_eps": 1000.0 * queries - float(chance.uniform(0, 20)),
        "batches": 40 * queries,
        "cpu_s": cpu_s,
        "controller_cpu_s": 0.0 if policy == "spark" else 0.01 * cpu_s,
        "drained": True,
        "samples": [
            {
                "t_s": float(t),
                "heap_used_bytes": 4e8 + 1e8 * float(chance.uniform()),
                "heap_max_bytes": 1e9,
                "cpu_cores": float(chance.uniform(0.5, 2.0)),
            }
            for t in range(30)
        ],
    }


def estimators() -> dict[str, Any]:
    rows = [
        {
            "estimator": estimator,
            "delays": delays,
            "confidence": confidence,
            "epochs": 1000,
            "coverage": confidence - off,
            "coverage_low": confidence - off - 0.02,
            "coverage_high": confidence - off + 0.015,
            "width_s": 0.2 * confidence,
        }
        for estimator, off in (("calibrated", 0.0), ("published", 0.5))
        for delays in ("uniform:0:300ms", "zipf:0.99:300ms")
        for confidence in (0.8, 0.9, 0.95)
    ]
    return {"rows": rows}


def bench(counts: tuple[int, ...] = (4, 8), repeats: int = 3) -> dict[str, Any]:
    return {
        "workload": "ysb",
        "queries": counts[0],
        "query_counts": list(counts),
        "rate": 1000.0,
        "window_s": 3.0,
        "settings": {"seconds": 30.0, "delays": "uniform:0:300ms", "master": None},
        "runs": [
            run(policy, repeat, count)
            for count in counts
            for repeat in range(repeats)
            for policy in POLICIES
        ],
    }


def all_there_is() -> dict[str, Any]:
    return bench() | {"estimators": estimators()}


@pytest.fixture(scope="module")
def whole() -> str:
    return page(all_there_is())


class Reader(HTMLParser):
    """Checks that tags nest, and collects what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.figures: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        found = {name: value or "" for name, value in attrs}
        assert len(found) == len(attrs), f"an attribute of {tag} comes twice"
        if tag == "figure":
            self.figures.append(found["id"])
        if "id" in found:
            self.ids.append(found["id"])
        for name, value in found.items():
            if name in ("href", "src"):
                self.targets.append(value)
            self.targets += re.findall(r"url\(([^)]*)\)", value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} closed but not open"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.setdefault(self.open[-1], []).append(data.strip())


def test_the_page_has_every_plot(whole: str) -> None:
    reader = Reader(whole)
    assert set(reader.figures) == PLOTS | ESTIMATOR_PLOTS
    assert len(reader.texts["figcaption"]) == len(PLOTS | ESTIMATOR_PLOTS)
    assert reader.texts["title"] == ["Benchmark ysb"]


def test_the_page_loads_nothing(whole: str) -> None:
    reader = Reader(whole)
    assert not re.search(r"https?:|//\w|@import", whole)
    assert reader.tags.isdisjoint({"script", "link", "img", "iframe", "object", "metadata"})
    assert reader.targets
    assert {target.removeprefix("#") for target in reader.targets} <= set(reader.ids)


def test_ids_are_unique_on_the_page(whole: str) -> None:
    ids = Reader(whole).ids
    assert len(ids) == len(set(ids))


def test_names_are_escaped(whole: str) -> None:
    reader = Reader(whole)
    assert "b" not in reader.tags
    assert any(ODD in text for text in reader.texts["th"])
    assert any(ODD in text for text in reader.texts["li"])


def test_names_are_drawn_as_they_are() -> None:
    """On the axis of a bar chart, where matplotlib would read dollar signs as mathematics."""
    reader = Reader(page(bench(counts=(4,))))
    assert ODD in "".join(reader.texts["text"])


def test_colours_are_the_same_in_all_plots(whole: str) -> None:
    figures = re.findall(r'<figure id="([^"]+)">(.*?)</figure>', whole, re.DOTALL)
    for key, text in figures:
        if key not in ESTIMATOR_PLOTS:
            assert {colour for colour in COLOURS if colour in text} == set(COLOURS[:3]), key


def test_colours_are_readable_on_both_backgrounds() -> None:
    for colour in COLOURS:
        assert contrast(colour, LIGHT) >= 3
        assert contrast(colour, DARK) >= 3


def test_ink_follows_the_scheme(whole: str) -> None:
    assert "prefers-color-scheme: dark" in whole
    assert "currentColor" in whole
    assert "#010203" not in whole
    assert "#000000" not in whole


def test_the_same_result_gives_the_same_page(whole: str) -> None:
    assert page(all_there_is()) == whole


def test_the_table_has_a_row_for_each_policy_and_count(whole: str) -> None:
    body = re.search(r"<tbody>(.*?)</tbody>", whole, re.DOTALL)
    assert body is not None
    assert body[1].count("<tr>") == 6
    one = page(bench(counts=(8,)))
    assert '<th scope="col">queries</th>' not in one


def test_the_table_tells_how_much_better_than_the_first() -> None:
    result = bench(counts=(8,))
    for other in result["runs"]:
        if other["policy"] == "klink":
            same = next(r for r in result["runs"] if r["repeat"] == other["repeat"])
            other["latencies_s"] = [value / 2 for value in same["latencies_s"]]
    assert page(result).count("0.50 <small>0.50…0.50</small>") == 2


def test_one_number_of_queries_needs_no_curve() -> None:
    assert set(Reader(page(bench(counts=(8,)))).figures) == PLOTS - {"mean-latency"}


@pytest.mark.parametrize(
    ("missing", "plots"),
    [
        ("latencies_s", {"mean-latency", "latency-bars", "latency-cdf", "slowdown"}),
        ("ideal_s", {"slowdown"}),
        ("throughput_eps", {"throughput"}),
        ("samples", {"memory", "cpu"}),
        ("cpu_s", {"overhead"}),
        ("controller_cpu_s", {"overhead"}),
        ("windows", set()),
        ("repeat", set()),
        ("watermark_delay_s", set()),
        ("policy", set()),
    ],
)
def test_plots_without_data_are_left_out(missing: str, plots: set[str]) -> None:
    result = bench()
    for each in result["runs"]:
        del each[missing]
    assert set(Reader(page(result)).figures) == PLOTS - plots


BROKEN: list[Any] = [
    None,
    "text",
    {},
    {"policy": "klink"},
    {"policy": None, "queries": "many", "repeat": []},
    {"policy": "klink", "repeat": 9, "queries": 8, "latencies_s": []},
    {"policy": "late", "repeat": 0, "queries": 8, "latencies_s": [None, math.nan, math.inf]},
    {"policy": "one", "repeat": 0, "queries": 8, "latencies_s": [1.0], "ideal_s": [0.0]},
    {"policy": "klink", "queries": 8, "windows": None, "samples": [None, {"t_s": "x"}]},
    {"policy": "zero", "queries": 8, "cpu_s": 0, "controller_cpu_s": 0, "throughput_eps": 0},
    {"policy": "early", "queries": 8, "latencies_s": [-0.5] * 9, "ideal_s": [1.0] * 9},
]


def test_broken_runs_do_not_break_the_page_for_the_others() -> None:
    result = bench()
    result["runs"] = BROKEN + result["runs"]
    assert set(Reader(page(result)).figures) == PLOTS


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_run_alone_does_not_break_the_page(broken: Any) -> None:
    Reader(page({"workload": "ysb", "runs": [broken]}))


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"runs": None, "settings": None, "estimators": None},
        {"runs": [], "estimators": {"rows": [None, {}, {"confidence": 0.9}]}},
        {"runs": {}, "estimators": {"rows": [{"confidence": 0.9, "coverage": 7, "width_s": "x"}]}},
    ],
)
def test_an_empty_result_gives_a_page_that_says_so(result: dict[str, Any]) -> None:
    text = page(result)
    assert Reader(text).figures == []
    assert "The result holds no run." in text


def test_estimators_alone_are_drawn() -> None:
    assert Reader(page({"estimators": estimators()})).figures == ["coverage", "width"]


def test_estimators_without_limits_get_binomial_ones() -> None:
    bare = estimators()
    for row in bare["rows"]:
        del row["coverage_low"], row["coverage_high"]
    assert Reader(page({"estimators": bare})).figures == ["coverage", "width"]


def test_lost_wrong_and_open_windows_are_told() -> None:
    result = bench(counts=(8,))
    bad = result["runs"][1]
    bad["windows"] = {"expected": 80, "emitted": 70, "wrong": 3}
    bad["drained"] = False
    text = page(result)
    assert "klink, 8 queries: 3 windows differ from the ground truth." in text
    assert "klink, 8 queries: 10 of 240 windows never came" in text
    assert "klink, 8 queries: 1 of 3 runs still had windows open" in text
    assert "notes" not in page(bench(counts=(8,))).split("<body>")[1]


def test_few_repeats_are_told() -> None:
    assert "fewer than three repeats" in page(bench(counts=(8,), repeats=2))


def test_slowdown_is_without_the_watermark_delay() -> None:
    raw = {"policy": "a", "latencies_s": [1.3], "ideal_s": [0.5], "watermark_delay_s": 0.3}
    (found,) = Runs({"queries": 1, "runs": [raw]}).slowdowns("a", 1)
    assert found == pytest.approx([5.0])


def test_the_page_is_written_where_asked(tmp_path: Path) -> None:
    result = json.loads(json.dumps(bench(counts=(4,), repeats=1)))
    before = copy.deepcopy(result)
    path = write_report(result, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "index.html"
    assert path.read_text(encoding="utf-8") == page(result)
    assert result == before


def test_a_folder_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SlackwaterError, match="cannot write the report to") as caught:
        write_report({}, tmp_path / "file")
    assert "\n" not in str(caught.value)


def test_the_command_line_does_not_load_matplotlib() -> None:
    code = "import slackwater.cli.main, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def contrast(one: str, other: str) -> float:
    """The ratio that the accessibility guidelines define."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
