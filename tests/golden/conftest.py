"""A clock that stands still."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.core import RealClock, VirtualClock
from tests.golden.scripted import START_S, ScriptedController


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    """Whoever asks for the real time is told this one."""
    clock = VirtualClock(START_S)
    monkeypatch.setattr(RealClock, "now", lambda _: clock.now())
    return clock


@pytest.fixture
def controller(clock: VirtualClock, utc: None, tmp_path: Path) -> Iterator[ScriptedController]:
    controller = ScriptedController(tmp_path, clock)
    yield controller
    controller.close()
