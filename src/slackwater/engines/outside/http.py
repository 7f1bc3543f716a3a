"""Reading an engine's public endpoints."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from slackwater.core.errors import EngineError, UsageError

LARGEST = 64 << 20  # of an answer: more is an error, not a reason to use up memory


class Endpoint:
    """One address that is asked again and again, over one connection.

    Parameters
    ----------
    url
        Such as ``http://127.0.0.1:8081``.
    timeout_s
        Longest silence.
    """

    def __init__(self, url: str, timeout_s: float = 5.0) -> None:
        parts = urlsplit(url)
        try:
            self.host, self.port = parts.hostname or "", parts.port or 80
        except ValueError:  # a port that is no number
            self.host, self.port = "", 0
        if parts.scheme != "http" or not self.host:
            raise UsageError(f"{url!r} is not an address such as http://127.0.0.1:8081")
        self.url = url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)

    def text(self, path: str) -> str:
        """Return what is answered, or raise an :class:`EngineError` that names the address."""
        for attempt in (1, 2):
            try:
                return self._ask(path)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                self.close()  # kept open for too long: once more with a new connection
                if attempt == 2:
                    raise EngineError(f"{self.url} hangs up") from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                reason = str(error) or type(error).__name__
                raise EngineError(f"{self.url} does not answer ({reason})") from error
        raise AssertionError("unreachable")

    def json(self, path: str) -> Any:
        text = self.text(path)
        try:
            return json.loads(text)
        except ValueError as error:
            raise EngineError(f"{self.url}{path} does not answer with JSON") from error

    def close(self) -> None:
        self._connection.close()

    def patch(self, path: str) -> None:
        """Tell an engine of our own something; others are looked at and never told."""
        try:
            self._ask(path, "PATCH")
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"{self.url} does not answer ({error})") from error

    def _ask(self, path: str, method: str = "GET") -> str:
        self._connection.request(method, self._prefix + path)
        response = self._connection.getresponse()
        body = response.read(LARGEST + 1)
        if len(body) > LARGEST:
            self.close()
            raise EngineError(f"{self.url}{path} answers with more than {LARGEST >> 20} MiB")
        if response.status not in (200, 202):
            raise EngineError(f"{self.url}{path} answers with status {response.status}")
        return body.decode(errors="replace")
