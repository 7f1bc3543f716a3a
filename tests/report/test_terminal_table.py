"""The status in a terminal: as wide as that is, and no word broken."""

from io import StringIO

import pytest
from rich.console import Console

from slackwater.engines.spark.queries.status import FleetStatus, QueryStatus

WAITS = "held until 13:06:00 (its window's end)"


def shown(width: int) -> list[str]:
    queries = tuple(
        QueryStatus(
            f"windows_of_10_s_{number}",
            "running",
            "clock",
            1.0 + number,
            2.1,
            WAITS,
            batches=30,
            rows=1000,
            input_rate=500.2,
            lag_rows=3.0,
            lag_s=1.2,
            target_s=2.0,
            batch_s=0.3,
            state_rows=30,
            kept=10,
            broken=1,
            error="ValueError: cannot parse row 2000" if number else None,
        )
        for number in range(2)
    )
    console = Console(width=width, file=StringIO())
    console.print(FleetStatus("ads", "klink", "clock", "running", 3, queries).table())
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 160, 240])
def test_no_word_is_broken(width: int) -> None:
    lines = shown(width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).replace("│", " ").split()
    there = ("windows_of_10_s_0", "running", "query", "ValueError:", "2000")
    for word in (*there, "13:06:00") if width >= 100 else there:
        assert word in words, word


def test_what_matters_stays_and_the_rest_is_named() -> None:
    narrow, wide = " ".join(shown(80)), " ".join(shown(300))
    assert "no room for" in narrow
    assert "priority" in narrow.split("no room for")[1]
    assert "no room for" not in wide
    assert all(word in wide for word in ("priority", "target s", "state rows", "10 of 11"))
