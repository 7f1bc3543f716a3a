"""What queries are called, and what went wrong with them, is text on the page and nothing else."""

from pathlib import Path

import pytest

from slackwater.ipc.messages import Note
from slackwater.operations.dashboard.server import Dashboard
from tests.browser import Browser, needs_chromium
from tests.operations.dashboard.asking import ask
from tests.operations.dashboard.pretence import PretendFleet
from tests.waiting import eventually

pytestmark = [pytest.mark.browser, needs_chromium]

NAME = "<img src=x onerror=alert(1)>"
ERROR = "</script><script>document.title='owned'</script>"


def test_names_and_errors_are_text(fleet: PretendFleet, page: Dashboard, tmp_path: Path) -> None:
    fleet.note(**{NAME: Note(state="failed", error=ERROR)})
    eventually(lambda: len(ask(page, "/status").json["queries"]) == 4)
    with Browser(tmp_path / "profile") as browser:
        browser.open(page.url)
        browser.wait_for("document.querySelectorAll('#queries tbody tr').length === 4")
        shown = browser.run("document.querySelector('#queries').textContent")
        assert NAME in shown
        assert ERROR in shown
        assert browser.run("document.images.length") == 0
        assert browser.run("document.title") == "Slackwater"
        assert browser.complaints == []
