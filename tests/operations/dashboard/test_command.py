"""`slackwater dashboard` as users run it."""

import http.client
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "slackwater.cli", "dashboard", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"SLACKWATER_RUNTIME_DIR": str(tmp_path)},
    )
    try:
        assert running.stdout is not None
        line = running.stdout.readline()
        token = tmp_path / "slackwater" / "dashboard.token"
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        assert str(token) in line
        assert token.read_text() not in line  # this is no terminal: it may be a log
        port = int(line.split("127.0.0.1:")[1].split("/")[0])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/health")
        assert json.loads(connection.getresponse().read()) == {"status": "ok", "fleets": {}}
        connection.close()
    finally:
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 0
