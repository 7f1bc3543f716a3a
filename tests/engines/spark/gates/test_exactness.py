"""Results with one batch a window, row by row, also when everything is killed in the middle."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.spark.gates.scripted_fleet import PHASES, Script, Stream
from tests.root import ROOT

pytestmark = pytest.mark.spark

LONG = os.environ.get("SLACKWATER_LONG") == "1"  # a few hundred streams instead of a handful
RUN_LIMIT_S = 1200 if LONG else 280


def random_stream(name: str, seed: int, source: str = "scripted") -> Stream:
    """Rows out of order, some of them later than the delay allows, and one far ahead to end it."""
    draw = random.Random(seed)
    window_ms, delay_ms = draw.choice((500, 1000, 3000)), draw.choice((0, 300, 1000))
    late = draw.choice((0.0, 0.0, 0.05, 0.2))  # share of rows beyond the delay
    now_ms, events = 1_700_000_000_000 + draw.randrange(5000), []
    for _ in range(draw.randrange(20, 200)):
        now_ms += draw.randrange(0, 300)
        behind = draw.randrange(0, delay_ms + 1)
        if draw.random() < late:
            behind = delay_ms + draw.randrange(0, 5 * window_ms)
        events.append(now_ms - behind)
    events.append(max(events) + 100 * window_ms)
    return Stream(name, events, window_ms, delay_ms, source)


def run(folder: Path, script: Script) -> int:
    script.write(folder)
    with (folder / "log").open("ab") as log:
        return subprocess.run(
            [sys.executable, "-m", "tests.engines.spark.gates.scripted_fleet", str(folder)],
            cwd=ROOT,
            stdout=log,
            stderr=log,
            env=os.environ | {"SLACKWATER_RUNTIME_DIR": str(folder), "PYTHONPATH": _path()},
            check=False,
            timeout=RUN_LIMIT_S,
        ).returncode


def _path() -> str:
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))


def mistakes(folder: Path, stream: Stream) -> list[str]:
    """What the batches of a query wrote, against what must and may be in each window."""
    files = sorted((folder / "out" / stream.name).glob("*.json"), key=lambda p: int(p.stem))
    written = [row for file in files for row in json.loads(file.read_text())]
    ends = [end for end, _ in written]
    found = [f"window {end} came twice" for end in set(ends) if ends.count(end) > 1]
    must, windows = stream.must_count(), stream.windows()
    last_ms = max(windows)  # holds the row that ends the stream, and never closes
    for end, numbers in written:
        own = windows.get(end, [])
        if len(set(numbers)) != len(numbers) or not set(numbers) <= set(own):
            found.append(f"window {end} has rows that are not its own, or twice")
        if missing := (must & set(own)) - set(numbers):
            found.append(f"window {end} lacks {sorted(missing)}")
    for end, own in windows.items():
        if end != last_ms and must & set(own) and end not in ends:
            found.append(f"window {end} never came")
    return found


def check(folder: Path, streams: list[Stream]) -> None:
    assert (folder / "done").exists(), (folder / "log").read_text()[-3000:]
    wrong = {s.name: found for s in streams if (found := mistakes(folder, s))}
    assert not wrong
    told = json.loads((folder / "status.json").read_text())
    assert set(told.values()) == {None}  # each had one batch a window


def raised(folder: Path) -> bool:
    """Whether some batch of each query ran with a watermark that was raised ahead of Spark."""
    counts = json.loads((folder / "raised.json").read_text())
    return all(counts.values())


@pytest.mark.timeout(5 * RUN_LIMIT_S if LONG else 300)
@pytest.mark.parametrize("group", range(12 if LONG else 1))
def test_nothing_is_lost_or_doubled_whatever_is_killed(group: int, tmp_path: Path) -> None:
    count = 25 if LONG else 4
    streams = [random_stream(f"q{n}", 1000 * group + n) for n in range(count)]
    phases = random.Random(group).sample(PHASES, 3 if LONG else 2)
    for phase in phases:
        (tmp_path / "reached").unlink(missing_ok=True)
        after = random.Random(f"{group} {phase}").randrange(2, 6 * count)
        status = run(tmp_path, Script(streams, group, die_at=phase, die_after=after))
        assert status in (-9, 0), (tmp_path / "log").read_text()[-3000:]
    (tmp_path / "done").unlink(missing_ok=True)
    assert run(tmp_path, Script(streams, group)) == 0, (tmp_path / "log").read_text()[-3000:]
    check(tmp_path, streams)


def test_the_checkpoint_stays_sparks(tmp_path: Path) -> None:
    """Begun with one batch a window, gone on with two, and with one again."""
    streams = [random_stream(f"q{n}", 77 + n) for n in range(2)]
    run(tmp_path, Script(streams, 1, die_at="written", die_after=6))
    (tmp_path / "reached").unlink(missing_ok=True)
    run(tmp_path, Script(streams, 2, one_batch="off", die_at="written", die_after=6))
    assert run(tmp_path, Script(streams, 3)) == 0, (tmp_path / "log").read_text()[-3000:]
    check(tmp_path, streams)
