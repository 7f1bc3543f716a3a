"""The HTTP server: a thread for each connection, on 127.0.0.1 alone."""

import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from slackwater import policies
from slackwater.core.errors import UsageError
from slackwater.ipc.framing import Decoder, ProtocolError, to_json
from slackwater.ipc.questions import Control, Failure
from slackwater.operations.dashboard.access import Guard, Refused
from slackwater.operations.dashboard.metrics import CONTENT_TYPE, FleetMetrics
from slackwater.operations.dashboard.page import Page
from slackwater.operations.dashboard.watch import DecisionEntry, Watch

HOST = "127.0.0.1"
MOST_STREAMS = 32  # pages that are open at once
MOST_BODY = 4096  # bytes of a command
BEAT_S = 10.0  # a stream says something at least so often, so that the dead are noticed
SLOW_S = 30.0  # who does not read or write for so long is let go


class PageCommand(msgspec.Struct):
    """What a page tells a controller."""

    fleet: str = ""
    action: str = ""
    query: str | msgspec.UnsetType = msgspec.UNSET
    policy: str | msgspec.UnsetType = msgspec.UNSET


_commands: Decoder[PageCommand] = Decoder(PageCommand)


class Dashboard(ThreadingHTTPServer):
    """Serves until it is shut down.

    Parameters
    ----------
    port
        0: any that is free.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, watch: Watch, port: int, token: bytes) -> None:
        super().__init__((HOST, port), Handler)
        self.watch = watch
        self.guard = Guard(self.server_port, token)
        self.metrics = FleetMetrics(watch)
        self.page = Page()
        self.streams = threading.BoundedSemaphore(MOST_STREAMS)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a page that was closed is no news."""


def listen(watch: Watch, port: int, token: bytes, tries: int = 20) -> Dashboard:
    """Listen on that port or one of the next, as Spark's own page does."""
    for number in range(port, port + tries if port else 1):
        try:
            return Dashboard(watch, number, token)
        except OSError:
            continue
    raise UsageError(f"no free port from {port} to {port + tries - 1}; name another with --port")


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Dashboard
    protocol_version = "HTTP/1.1"
    server_version = "slackwater"
    sys_version = ""
    timeout = SLOW_S

    def do_GET(self) -> None:
        self._guarded(self._look)

    def do_POST(self) -> None:
        self._guarded(self._act)

    def _unknown(self) -> None:
        self._guarded(self._refuse_method)

    do_HEAD = do_GET
    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _unknown

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log of requests."""

    # -- looking --------------------------------------------------------------------------------

    def _look(self) -> None:
        parts = urlsplit(self.path)
        match parts.path:
            case "/":
                self._send(self.server.page.html, "text/html; charset=utf-8")
            case "/health":
                self._send_json({"status": "ok", "fleets": self._health()})
            case "/status":
                self._send(self.server.watch.now().text.encode(), "application/json")
            case "/decisions":
                self._send_json(self._decisions(parse_qs(parts.query)))
            case "/metrics":
                self._send(self.server.metrics.text(), CONTENT_TYPE)
            case "/events":
                self._stream()
            case _:
                raise Refused(HTTPStatus.NOT_FOUND, f"nothing is at {parts.path}")

    def _health(self) -> dict[str, str]:
        return {fleet.name: fleet.state for fleet in self.server.watch.now().status.fleets}

    def _decisions(self, asked: dict[str, list[str]]) -> list[DecisionEntry]:
        self.server.watch.now()
        try:
            last = int(asked.get("last", ["20"])[0])
        except ValueError:
            raise Refused(HTTPStatus.BAD_REQUEST, "last is a number") from None
        query = asked.get("query", [None])[0]
        found = [e for e in self.server.watch.log.since(0) if isinstance(e, DecisionEntry)]
        wanted = [each for each in found if query in (None, each.query)]
        return wanted[::-1][: max(0, last)]

    def _stream(self) -> None:
        """Send events until the page is closed."""
        if not self.server.streams.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many pages are open")
        try:
            self._begin(HTTPStatus.OK, "text/event-stream", None)
            if self.command == "HEAD":
                return
            for event in self._events():
                self.wfile.write(event)
                self.wfile.flush()
        finally:
            self.server.streams.release()

    def _events(self) -> Iterator[bytes]:
        watch, told = self.server.watch, 0
        seen = watch.now().number - 1  # what was seen before anybody looked is old
        yield b"retry: 1000\n\n"
        yield _event("hello", to_json({"policies": policies.names()}))
        while not watch.closed:
            picture = watch.after(seen, BEAT_S)
            if picture is None:
                yield b": still here\n\n"
                continue
            seen, before, told = picture.number, told, watch.log.last
            if told > before:
                yield _event("happened", to_json(watch.log.since(before)))
            yield _event("status", picture.text.encode())

    # -- acting ---------------------------------------------------------------------------------

    def _act(self) -> None:
        if urlsplit(self.path).path != "/control":
            raise Refused(HTTPStatus.NOT_FOUND, "commands go to /control")
        command = self._command()
        if command.policy and command.policy not in policies.names():
            raise Refused(HTTPStatus.BAD_REQUEST, f"unknown policy {command.policy!r}")
        asked = Control(action=command.action, query=command.query, policy=command.policy)
        answer = self.server.watch.control(command.fleet, asked)
        failed = isinstance(answer, Failure)
        self._send_json(answer, HTTPStatus.BAD_REQUEST if failed else HTTPStatus.OK)

    def _command(self) -> PageCommand:
        try:
            size = int(self.headers.get("Content-Length", ""))
            if not 0 < size <= MOST_BODY:
                raise ValueError
            return _commands.decode(self.rfile.read(size))
        except (ValueError, ProtocolError):
            self.close_connection = True
            raise Refused(HTTPStatus.BAD_REQUEST, "a command is a small JSON object") from None

    def _refuse_method(self) -> None:
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"{self.command} is not known here")

    # -- answering ------------------------------------------------------------------------------

    def _guarded(self, answer: Any) -> None:
        try:
            self.server.guard.check(self.command, self.headers.get)
            answer()
        except Refused as refused:
            self.close_connection = True  # what else was sent is not read
            self._send_json({"error": str(refused)}, refused.status)

    def _send_json(self, value: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(to_json(value), "application/json", status)

    def _send(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._begin(status, kind, len(body))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _begin(self, status: HTTPStatus, kind: str, size: int | None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if size is None:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(size))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Content-Security-Policy", self.server.page.security)
        self.end_headers()


def _event(kind: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)
