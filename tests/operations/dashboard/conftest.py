"""A controller, queries that pretend, and a page over them."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.engines.spark.control.process import ControllerProcess
from slackwater.engines.spark.control.service import ControllerSettings
from slackwater.operations.dashboard.server import Dashboard
from slackwater.operations.dashboard.watch import Watch
from tests.operations.dashboard.pretence import PretendFleet

TOKEN = "a token of sixteen or more"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ads.sock"


@pytest.fixture
def controller(path: Path) -> Iterator[ControllerProcess]:
    running = ControllerProcess(ControllerSettings(str(path), "klink", slots=2))
    yield running
    running.close()


@pytest.fixture
def fleet(path: Path, controller: ControllerProcess) -> Iterator[PretendFleet]:
    running = PretendFleet(path)
    yield running
    running.close()


@pytest.fixture
def page(path: Path) -> Iterator[Dashboard]:
    watch = Watch(lambda: [path], expected=True)
    dashboard = Dashboard(watch, 0, TOKEN.encode())
    serving = threading.Thread(target=dashboard.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    yield dashboard
    watch.close()
    dashboard.shutdown()
    dashboard.server_close()
