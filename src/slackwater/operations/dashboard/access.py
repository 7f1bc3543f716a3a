"""Who may do what: everyone on this machine may look, who has the token may act."""

import hmac
from collections.abc import Callable
from http import HTTPStatus

LOOKING = ("GET", "HEAD")


class Refused(Exception):
    """A request that is not answered."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Guard:
    """Checks requests.

    A browser on this machine sends requests for any page that it shows. The header ``Host`` tells
    those that were meant for another name (DNS rebinding), ``Origin`` those that another page
    sends.

    Parameters
    ----------
    port
        Where we listen.
    token
        Of those who may act.
    """

    def __init__(self, port: int, token: bytes) -> None:
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._token = token

    def check(self, method: str, header: Callable[[str], str | None]) -> None:
        """Raise :class:`Refused` where it may not.

        >>> guard = Guard(8461, b"secret")
        >>> guard.check("GET", {"Host": "127.0.0.1:8461"}.get)
        >>> guard.check("GET", {"Host": "evil.example:8461"}.get)
        Traceback (most recent call last):
        ...
        slackwater.operations.dashboard.access.Refused: this is not the host that was asked for
        """
        if header("Host") not in self._hosts:
            raise Refused(HTTPStatus.FORBIDDEN, "this is not the host that was asked for")
        origin = header("Origin")
        if origin is not None and origin.removeprefix("http://") not in self._hosts:
            raise Refused(HTTPStatus.FORBIDDEN, "another page asks")
        if method in LOOKING:
            return
        kind, _, told = (header("Authorization") or "").partition(" ")
        if kind != "Bearer" or not hmac.compare_digest(told.encode(), self._token):
            raise Refused(HTTPStatus.UNAUTHORIZED, "that takes the token: Authorization: Bearer …")
