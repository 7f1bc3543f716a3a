"""What sources tell between micro-batches."""

from itertools import count
from pathlib import Path

import pytest

from slackwater.engines.spark.progress import Arrived
from slackwater.engines.spark.sources.announcements import announce, heard, remove
from tests.waiting import eventually


def test_a_source_tells_as_long_as_somebody_sheds(tmp_path: Path) -> None:
    shed, looks = tmp_path / "a.json", count(1)
    announce(str(shed), lambda: {"t": 1_000_000 * next(looks), "n": 7})
    assert heard([shed]) == []
    shed.write_text("{}")
    eventually(lambda: len(heard([shed])) >= 2)
    first, second = heard([shed])[:2]
    assert (first, second) == (Arrived(7.0, 1.0), Arrived(7.0, 2.0))
    remove(shed)
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_fails_falls_silent(tmp_path: Path) -> None:
    shed, asked = tmp_path / "a.json", count()
    shed.write_text("{}")

    def look() -> dict[str, int]:
        next(asked)
        raise OSError

    announce(str(shed), look)
    eventually(lambda: repr(asked) == "count(1)")
    assert heard([shed]) == []


def test_several_sources_are_counted_together(tmp_path: Path) -> None:
    sheds = [tmp_path / "a.json", tmp_path / "b.json"]
    (tmp_path / "a.arrived").write_text("[[1000000, 5], [2000000, 10], [3000000, 15]]")
    assert heard(sheds) == []
    (tmp_path / "b.arrived").write_text("[[2200000, 100], [3200000, 300]]")
    assert heard(sheds) == [Arrived(110.0, 2.1), Arrived(315.0, 3.1)]


@pytest.mark.parametrize("text", ["", "{", "7", '[["x", 1]]', "[[1]]"])
def test_nonsense_is_silence(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.arrived").write_text(text)
    assert heard([tmp_path / "a.json"]) == []
