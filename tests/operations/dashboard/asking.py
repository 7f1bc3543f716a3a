"""Requests as browsers and others send them."""

import http.client
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from slackwater.operations.dashboard.server import Dashboard


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def ask(
    page: Dashboard,
    path: str,
    method: str = "GET",
    body: Any = None,
    token: str | None = None,
    **headers: str,
) -> Answer:
    """One request; ``Host`` and others can be given as keywords."""
    connection = http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=20)
    sent = {"Host": f"127.0.0.1:{page.server_port}", **headers}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    text = None if body is None else body if isinstance(body, str) else json.dumps(body)
    connection.request(method, path, text, sent)
    found = connection.getresponse()
    answer = Answer(found.status, dict(found.getheaders()), found.read().decode())
    connection.close()
    return answer


def events(page: Dashboard) -> Iterator[tuple[str, Any]]:
    """Server-sent events, as they come."""
    connection = http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=20)
    connection.request("GET", "/events")
    found, kind = connection.getresponse(), ""
    try:
        while line := found.readline().decode():
            if line.startswith("event: "):
                kind = line[7:].strip()
            elif line.startswith("data: "):
                yield kind, json.loads(line[6:])
    finally:
        connection.close()
