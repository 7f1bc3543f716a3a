"""What sources are told, and what they reply."""

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from slackwater.engines.spark.progress import Arrived
from slackwater.engines.spark.sources.directives import (
    NOTHING,
    Directives,
    DirectivesFile,
    arrived_at,
    read_directives,
    reply_arrivals,
)
from slackwater.quality.rates import NO_SHEDDING, ShedPlan
from slackwater.sampling.grid import Grid
from slackwater.sampling.plan import CellPlan, Plan
from tests.waiting import eventually

PLAN = Plan(Grid(3_000_000, 1_000_000), CellPlan(5, (0.3, 0.2), (0.6,), (0.1,)), 10, until_s=9e9)
TIMES = 200  # that each writer writes


@pytest.fixture
def file(tmp_path: Path) -> DirectivesFile:
    return DirectivesFile(tmp_path / "a.json")


def test_what_is_told_is_read(file: DirectivesFile) -> None:
    file.update(rows=7)
    file.shed(ShedPlan(0.5, 0.25, 100, 0.125))
    file.sample(PLAN)
    told = read_directives(file.path)
    assert (told.rows, told.sample) == (7, PLAN)
    assert told.at(0.0).shedding == ShedPlan(0.5, 0.25, 100, 0.125)


def test_numbers_of_numpy_are_told_as_numbers(file: DirectivesFile) -> None:
    file.sample(Plan(PLAN.grid, CellPlan(5, (np.float64(0.25),)), 10))  # type: ignore[arg-type]
    told = file.read().sample
    assert told is not None
    assert told.cell.rates == (0.25,)


def test_the_file_goes_with_the_last_part(file: DirectivesFile) -> None:
    file.update(rows=7)
    file.sample(PLAN)
    file.update(rows=None)
    assert file.read() == Directives(sample=PLAN)
    file.sample(None)
    assert not list(file.path.parent.iterdir())
    assert file.read() == NOTHING


def test_what_has_run_out_is_not_followed() -> None:
    told = Directives(rows=0, until=5.0, sample=PLAN)
    assert told.at(4.9).rows == 0
    assert told.at(5.0).rows is None
    exact = told.at(9.1e9).sampling
    assert exact is not None
    assert exact.cell.rates == (1.0,)


# Writes one part again and again, as a source gate does in a process of its own.
WRITE_ROWS = """
import sys
from pathlib import Path
from slackwater.engines.spark.sources.directives import DirectivesFile
for rows in range(1, int(sys.argv[2]) + 1):
    DirectivesFile(Path(sys.argv[1])).update(rows=rows)
"""


def test_no_writer_overwrites_the_part_of_another(file: DirectivesFile) -> None:
    command = [sys.executable, "-c", WRITE_ROWS, str(file.path), str(TIMES)]
    elsewhere = subprocess.Popen(command)
    with ThreadPoolExecutor(1) as here:
        planner = here.submit(lambda: [file.sample(PLAN) for _ in range(TIMES)])
        accuracies = itertools.cycle([0.25, 0.75])
        while elsewhere.poll() is None:
            file.shed(ShedPlan(next(accuracies)))
        planner.result()
    assert elsewhere.returncode == 0
    file.shed(NO_SHEDDING)
    told = file.read()
    assert (told.rows, told.sample) == (TIMES, PLAN)
    assert told.shed is not None
    assert told.shed.plan == NO_SHEDDING


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "7", "null", "\xff", '{"rows": "5"}', '{"rows": -1}', '{"rows": 1.5}',
     '{"rows": 5, "sample": {"grid": 3}}', '{"rows": 5, "sample": {"grid": {"size_us": 0}}}',
     '{"rows": 5, "shed": {"plan": {"accuracy": 2}, "until": 9e9}}', '{"rows": 5, "until": ""}'],
)  # fmt: skip
def test_a_broken_file_tells_nothing(file: DirectivesFile, content: str) -> None:
    file.path.write_text(content, encoding="latin-1")
    assert file.read() == NOTHING


# -- replies --------------------------------------------------------------------------------------


def test_a_source_replies_as_long_as_somebody_sheds(file: DirectivesFile) -> None:
    looks = itertools.count(1)
    reply_arrivals(str(file.path), lambda: {"t": 1_000_000 * next(looks), "n": 7})
    file.update(rows=5)
    assert arrived_at([file]) == []
    file.shed(NO_SHEDDING)
    eventually(lambda: len(arrived_at([file])) >= 2)
    first, second = arrived_at([file])[:2]
    assert (first, second) == (Arrived(7.0, 1.0), Arrived(7.0, 2.0))
    file.update(rows=None)
    file.end_shedding()
    assert list(file.path.parent.iterdir()) == []


def test_a_source_that_fails_falls_silent(file: DirectivesFile) -> None:
    asked = itertools.count()
    file.shed(NO_SHEDDING)

    def fail() -> dict[str, int]:
        next(asked)
        raise OSError

    reply_arrivals(str(file.path), fail)
    eventually(lambda: repr(asked) == "count(1)")
    assert arrived_at([file]) == []


def test_several_sources_are_counted_together(tmp_path: Path) -> None:
    files = [DirectivesFile(tmp_path / "a.json"), DirectivesFile(tmp_path / "b.json")]
    files[0].reply_path.write_text('{"arrived": [[1000000, 5], [2000000, 10], [3000000, 15]]}')
    assert arrived_at(files) == []
    files[1].reply_path.write_text('{"arrived": [[2200000, 100], [3200000, 300]]}')
    assert arrived_at(files) == [Arrived(110.0, 2.1), Arrived(315.0, 3.1)]


@pytest.mark.parametrize("text", ["", "{", "7", '{"arrived": [["x", 1]]}', '{"arrived": [[1]]}'])
def test_nonsense_is_silence(file: DirectivesFile, text: str) -> None:
    file.reply_path.write_text(text)
    assert arrived_at([file]) == []
