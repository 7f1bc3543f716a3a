"""Tables of figures in the documentation are those of the result files beside it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import UsageError
from slackwater_bench.figures.__main__ import main
from slackwater_bench.figures.pages import pages_of, results_of, written
from slackwater_bench.figures.plan import PLAN, chosen
from tests.root import ROOT

FOLDER = ROOT / "docs" / "figures"
RESULTS = results_of(FOLDER)
# In the README: the picture of bars and the table of what to expect, without its first column.
_BARS = re.compile(r"█+(.*)")
_CELLS = re.compile(r"^\| (?!two cores|---)[^|]*\|(.*)\|$", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)")


@pytest.mark.parametrize("page", pages_of(ROOT), ids=lambda page: page.name)
def test_a_page_has_what_was_measured(page: Path) -> None:
    assert written(page.read_text(), RESULTS) == page.read_text(), "run make figures"


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_says_where_it_comes_from(name: str) -> None:
    (figure,) = chosen([name])
    result = RESULTS[name]
    assert result["command"] == figure.command
    assert result["rows"]
    assert {"date", "commit", "machine", "versions", "disturbed"} <= result["conditions"].keys()
    assert (FOLDER / f"{name}.json").stat().st_size < 100_000, "only what tables show is kept"


def test_headlines_are_figures_that_were_measured() -> None:
    text = (ROOT / "README.md").read_text()
    found = _BARS.findall(text) + _CELLS.findall(text)
    assert len(found) == 7
    known = set(_floats({name: RESULTS[name]["rows"] for name in ("ysb-8-kafka", "mixed")}))
    for number in _NUMBER.findall(" ".join(found)):
        digits = len(number.partition(".")[2])
        shares = (round(100 * value, digits) for value in known)
        values = {round(value, digits) for value in known}
        assert float(number) in values | set(shares), f"{number} is in no result file"


def _floats(found: Any) -> Iterator[float]:
    if isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from _floats(each)
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield float(found)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    (tmp_path / "README.md").write_text("<!-- figures: ysb-11 -->\n<!-- end of figures -->\n")
    return tmp_path


def test_a_table_goes_where_its_marks_are(checkout: Path) -> None:
    (figure,) = chosen(["ysb-11"])
    runs = [
        {
            "policy": policy,
            "repeat": repeat,
            "queries": 11,
            "latencies_s": [each, 2 * each],
            "windows": {"expected": 2, "emitted": 2, "wrong": 0},
            "batches": 4,
            "cpu_s": 3.0,
        }
        for repeat in range(2)
        for policy, each in (("spark", 4.0), ("klink", 1.0))
    ]
    conditions = RESULTS[next(iter(RESULTS))]["conditions"]
    result = {"command": figure.command, "conditions": conditions}
    result |= {"rows": figure.reduce({"runs": runs})}
    (checkout / "docs" / "figures" / "ysb-11.json").write_text(json.dumps(result))
    assert main(["--pages", "--root", str(checkout)]) == 0
    text = (checkout / "README.md").read_text()
    assert "| `spark` | 6.00" in text
    assert "0.25" in text
    assert "4; 0" in text
    assert main(["--pages", "--root", str(checkout)]) == 0
    assert (checkout / "README.md").read_text() == text


def test_what_nobody_has_measured_is_refused(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--pages", "--root", str(checkout)]) == 2
    assert "'ysb-11', which nobody has measured" in capsys.readouterr().err
    assert main(["nonsense", "--root", str(checkout)]) == 2
    assert "no figure nonsense; there are ysb-11" in capsys.readouterr().err
    with pytest.raises(UsageError, match="nobody"):
        written((checkout / "README.md").read_text(), {})


def test_every_figure_has_a_place_of_its_own() -> None:
    names = [figure.name for figure in PLAN]
    assert len(set(names)) == len(names)
