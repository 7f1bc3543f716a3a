"""Debian's chromium, headless, driven over its debugging pipe: JSON in, JSON out, no driver."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-headless-shell")

# The pipe is on descriptors 3 and 4, by agreement.
START = """
import os, sys
from fcntl import F_DUPFD, fcntl
read, write = (fcntl(int(each), F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


class Browser:
    """One page in a browser of its own.

    Parameters
    ----------
    profile
        A folder for its files.
    """

    def __init__(self, profile: Path, width: int = 1280, height: int = 900) -> None:
        assert CHROMIUM is not None
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        flags = [
            "--headless=new",
            "--no-sandbox",  # it runs as root in containers; it sees nothing but our page
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, f"{theirs_in}", f"{theirs_out}", CHROMIUM, *flags],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in = os.fdopen(ours_in, "rb", buffering=0)
        self._out = os.fdopen(ours_out, "wb", buffering=0)
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []  # errors that the page's scripts raised
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol, and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._hear(answer)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str, limit_s: float = 30.0) -> Any:
        """Until an expression is true."""
        until_s = time.monotonic() + limit_s
        while not (found := self.run(script)):
            assert time.monotonic() < until_s, f"not within {limit_s} s: {script}"
            time.sleep(0.05)
        return found

    def press(self, key: str) -> None:
        """One key, as a person would."""
        code = {"Tab": 9, "Enter": 13}.get(key, ord(key[0].upper()))
        text = {"Tab": "", "Enter": "\r"}.get(key, key)
        common = {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def prefer(self, scheme: str) -> None:
        """Dark or light."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def screenshot(self, path: Path) -> None:
        found = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))

    def cpu_s(self) -> float:
        """Of all its processes."""
        family = [psutil.Process(self._process.pid)]
        family += family[0].children(recursive=True)
        return sum(sum(each.cpu_times()[:2]) for each in family)

    def close(self) -> None:
        try:
            self._session = None
            self.call("Browser.close")
            self._process.wait(timeout=10)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            os.killpg(self._process.pid, 9)
            self._process.wait()
        self._in.close()
        self._out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = self._in.read(1 << 16)
            assert data, "the browser has ended"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def _hear(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(parameters["entry"]["text"])
