"""One message a line of JSON: encoding, cutting a stream into lines, checking what comes in."""

import json
import numbers
from typing import Any, Generic, TypeVar

import msgspec

from slackwater.core.errors import SlackwaterError

MAX_LINE = 1 << 20  # a longer message is an error, not a reason to use up memory
SHOWN = 80  # bytes of a message that did not fit, in the error

M = TypeVar("M")


class ProtocolError(SlackwaterError):
    """The other side does not speak this protocol."""


def to_json(value: Any) -> bytes:
    """Return a value as JSON, which knows no infinity: that is ``null``.

    >>> to_json({"slack_s": float("inf"), "rows": [1.5]})
    b'{"slack_s":null,"rows":[1.5]}'
    """
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:  # half a character, from an exception's text say
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
        return text.encode(errors="replace")


def encode(message: Any) -> bytes:
    """Return a message as its line.

    >>> encode({"op": "beat", "open": False})
    b'{"op":"beat","open":false}\\n'
    """
    return to_json(message) + b"\n"


def _plain(value: Any) -> Any:
    """Return a number of numpy's, or another text or number of its own kind, as Python's."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise NotImplementedError(f"a {type(value).__name__} cannot be sent")


_encoder = msgspec.json.Encoder(enc_hook=_plain)


class LineBuffer:
    """Cuts a stream of bytes into lines.

    >>> buffer = LineBuffer()
    >>> buffer.feed(b'{"op":"beat"}\\n{"op":')
    [b'{"op":"beat"}']
    >>> buffer.feed(b'"grant"}\\n')
    [b'{"op":"grant"}']
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes; return the lines that are complete now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ProtocolError(f"a message of more than {MAX_LINE} bytes")
        return lines


class Decoder(Generic[M]):
    """Reads lines that hold messages of one type, usually a union; refuses all others.

    >>> Decoder(dict[str, int]).decode(b'{"n": "x"}')
    Traceback (most recent call last):
    slackwater.ipc.framing.ProtocolError: Expected `int`, got `str` - at `$[...]`: b'{"n": "x"}'
    """

    def __init__(self, kind: Any) -> None:  # a union is no type to mypy
        self._decode = msgspec.json.Decoder(kind).decode

    def decode(self, line: bytes | msgspec.Raw) -> M:
        """Return the message; raise :class:`ProtocolError` saying what does not fit."""
        try:
            found: M = self._decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ProtocolError(f"{error}: {bytes(line)[:SHOWN]!r}") from None
        return found
