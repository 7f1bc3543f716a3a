"""A server between Spark and S3 that refuses some files."""

import re
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

REFUSAL = b"<Error><Code>AccessDenied</Code><Message>refused for the test</Message></Error>"


class FailingServer:
    """On loopback; all but the refused requests are passed on.

    Parameters
    ----------
    address
        Of the server behind it.
    refused
        Pattern of the paths of files that cannot be put.
    """

    def __init__(self, address: str, refused: str) -> None:
        behind, asked = urlsplit(address).netloc, self
        self.refusals: list[str] = []
        self._refused: re.Pattern[str] | None = re.compile(refused)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.command == "PUT" and asked._refuses(urlsplit(self.path).path):
                    self.answer(403, [], REFUSAL)
                    return
                server = HTTPConnection(behind)
                try:
                    server.request(self.command, self.path, body, dict(self.headers.items()))
                    answer = server.getresponse()
                    self.answer(answer.status, answer.getheaders(), answer.read())
                finally:
                    server.close()

            def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
                self.send_response_only(status)
                told = {name.lower() for name, _ in headers}
                for name, value in headers:
                    if name.lower() not in ("connection", "transfer-encoding"):
                        self.send_header(name, value)
                if "content-length" not in told:  # HEAD tells the length of what it does not send
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Say nothing."""

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = pass_on

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def refuses_nothing(self) -> None:
        """Take everything from now on."""
        self._refused = None

    def _refuses(self, path: str) -> bool:
        if self._refused is None or not self._refused.search(path):
            return False
        self.refusals.append(path)
        return True

    def stop(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
