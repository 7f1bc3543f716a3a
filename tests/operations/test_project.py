"""As a new user would: from an empty folder to queries on the page, a recording and a replay."""

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slackwater.report.result import BenchResult
from tests.cli.test_main import slackwater
from tests.waiting import eventually

pytestmark = pytest.mark.spark


def status(port: int) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/status")
    return json.loads(connection.getresponse().read())


def test_what_init_writes_runs_is_shown_recorded_and_replayed(tmp_path: Path) -> None:
    done = slackwater(tmp_path, "init", "ads")
    assert "now: cd ads && slackwater run --dashboard" in done.stdout
    folder = tmp_path / "ads"
    log = (tmp_path / "log").open("wb")
    running = subprocess.Popen(
        [sys.executable, "-m", "slackwater.cli", "run", "--dashboard", "--port", "0"],
        cwd=folder,
        stdout=log,
        stderr=log,
        env=os.environ | {"SLACKWATER_RUNTIME_DIR": str(folder)},
        start_new_session=True,
    )

    def lines() -> list[str]:
        return (tmp_path / "log").read_text().splitlines()

    try:
        eventually(lambda: any(line.startswith("page: ") for line in lines()), 60)
        invitation = next(line for line in lines() if line.startswith("page: "))
        assert "#token" not in invitation  # it is no terminal
        port = int(invitation.split(":")[3].split("/")[0])
        eventually(lambda: len(status(port)["queries"]) == 3, 120)
        eventually(lambda: all(q["latencies_s"] for q in status(port)["queries"]), 120, 0.5)
        shown = {query["name"]: query for query in status(port)["queries"]}
        assert shown["visits"]["target_s"] == 2.0
        assert shown["visits"]["gate"] == "clock"
        assert shown["visits"]["runId"]
        table = slackwater(folder, "status", "--json", "status.json").stdout
        assert "visits" in table
        assert "klink" in table
        assert len(json.loads((folder / "status.json").read_text())["queries"]) == 3
        kept = slackwater(folder, "record", "run.jsonl", "--seconds", "12")
        assert kept.returncode == 0, kept.stderr
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(90) == 0
        log.close()
    assert list((folder / "out" / "visits").glob("*.parquet"))
    done = slackwater(folder, "replay", "run.jsonl", "--policies", "fcfs", "--json", "replay.json")
    assert done.returncode == 0, done.stderr
    result = BenchResult.read(folder / "replay.json")
    arms = ["klink, as recorded", "klink, replayed", "fcfs, replayed"]
    assert [run["policy"] for run in result["runs"]] == arms
    assert all(run["latencies_s"] for run in result["runs"])
    assert "fcfs, replayed" in result._repr_html_()
