"""A real redis-server on a Unix socket, which can be killed and started again."""

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.waiting import eventually


class RedisServer:
    """Writes every command to its file before it answers, so kill -9 loses nothing."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("redis-server") is None:
            pytest.skip("redis-server is not installed (Debian/Ubuntu: apt install redis-server)")
        self._folder = folder
        self._socket = folder / "redis.sock"
        self.url = f"unix://{self._socket}"
        self.client = client_of(self.url)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        settings = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._folder),
            "appendonly": "yes",
            # Not the default, everysec: it answers before it writes while an fsync is under way.
            "appendfsync": "no",
            "save": "",
        }
        arguments = [part for key, value in settings.items() for part in (f"--{key}", value)]
        with (self._folder / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(["redis-server", *arguments], stdout=log, stderr=log)
        eventually(self._answers)

    def kill(self) -> None:
        """-9, in the middle of whatever it does."""
        if self.process is not None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def add(self, stream: str, rows: list[dict[str, object]], first_ms: int | None = None) -> None:
        """Entries with ids of Redis's own, or one a millisecond from ``first_ms`` on."""
        pipeline = self.client.pipeline(transaction=False)
        for number, row in enumerate(rows):
            identity = "*" if first_ms is None else f"{first_ms + number}-0"
            pipeline.xadd(stream, row, id=identity)  # type: ignore[arg-type]
        pipeline.execute()

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False


class RedisProducer(threading.Thread):
    """Writes entries with ids of its own, so that one written twice is refused by Redis."""

    def __init__(self, server: RedisServer, streams: list[str], rows: int) -> None:
        super().__init__(daemon=True)
        self._client = client_of(server.url)
        self._streams = streams
        self.rows = rows
        self.sent = 0

    def run(self) -> None:
        while self.sent < self.rows:
            try:
                self._send(self.sent)
            except (redis.ConnectionError, redis.TimeoutError):
                time.sleep(0.01)
            else:
                self.sent += 1
                if self.sent % 20 == 0:
                    time.sleep(0.02)

    def _send(self, number: int) -> None:
        stream = self._streams[number % len(self._streams)]
        try:
            self._client.xadd(stream, {"number": number}, id=f"{1_700_000_000_000 + number}-0")
        except redis.ResponseError as error:
            if "equal or smaller" not in str(error):  # it had come through before the kill
                raise


def client_of(url: str) -> redis.Redis:
    """A client that tries once."""
    return redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0))
