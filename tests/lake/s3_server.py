"""moto's server: it speaks the protocol of S3 and keeps objects in memory. It is not S3."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

from slackwater.core.clock import Deadline
from slackwater_bench.kafka_broker import free_ports
from tests.lake.jars import BUCKET, FOLDER

START_S = 60.0


class S3Server:
    """On loopback, with one bucket.

    Parameters
    ----------
    folder
        Where it logs its requests.
    """

    def __init__(self, folder: Path) -> None:
        port, _ = free_ports()
        self.address = f"http://127.0.0.1:{port}"
        self._log = folder / "requests"
        command = [FOLDER / "s3" / "bin" / "moto_server", "-H", "127.0.0.1", "-p", str(port)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        assert Deadline(START_S).wait_for(self._makes_bucket, every_s=0.1), self._log.read_text()

    def _makes_bucket(self) -> bool:
        try:
            with urlopen(Request(f"{self.address}/{BUCKET}", method="PUT"), timeout=5) as answer:
                return bool(answer.status == 200)
        except URLError:
            return False

    def requests(self, path: str = "") -> Counter[str]:
        """Return how many requests there have been for a path and below, by their kind."""
        pattern = rf"([A-Z]+) /{BUCKET}\S*{re.escape(path)}\S* HTTP/"
        return Counter(re.findall(pattern, self._log.read_text()))

    def seen(self, pattern: str) -> bool:
        """Tell whether any request was for such a path."""
        return re.search(pattern, self._log.read_text()) is not None

    def stop(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
