"""Who may speak on the channel, and what is believed."""

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.core.errors import UsageError
from slackwater.ipc.framing import ProtocolError
from slackwater.operations.workers import channel as channel_module
from slackwater.operations.workers.channel import Channel, accept, join
from slackwater.operations.workers.secret import VARIABLE, make_token, read_token

TOKEN = b"a token that is long enough"


def pair(token: bytes = TOKEN, other: bytes = TOKEN) -> tuple[Channel, Channel]:
    """Both ends of a channel: the supervisor's and a worker's."""
    here, there = socket.socketpair()
    found: list[Channel] = []
    failed: list[Exception] = []

    def serve() -> None:
        try:
            found.append(accept(here, token))
        except (ProtocolError, OSError) as error:
            failed.append(error)
            here.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        worker = join(there, other, "w1")
    finally:
        thread.join()
    if failed:
        raise failed[0]
    return found[0], worker


def test_what_is_said_is_heard_in_order_on_both_sides() -> None:
    supervisor, worker = pair()
    assert supervisor.peer == "w1"
    for number in range(3):
        supervisor.send({"op": "start", "query": f"q{number}"})
        worker.send({"op": "report", "number": number})
    assert [worker.receive() for _ in range(3)][2] == {"op": "start", "query": "q2"}
    assert supervisor.receive() == {"op": "report", "number": 0}
    worker.close()


def test_a_stranger_without_the_token_cannot_join() -> None:
    with pytest.raises(ProtocolError):
        pair(other=b"some other token, also long")


def test_a_supervisor_without_the_token_is_not_obeyed() -> None:
    here, there = socket.socketpair()

    def pretend() -> None:
        here.sendall(b'{"nonce": "0123"}\n')
        here.recv(1000)
        here.sendall(b'{"proof": "I am the supervisor"}\n')

    thread = threading.Thread(target=pretend)
    thread.start()
    with pytest.raises(ProtocolError, match="supervisor does not know the token"):
        join(there, TOKEN, "w1")
    thread.join()


@given(st.binary(min_size=1, max_size=80).filter(lambda text: b"\n" not in text))
@settings(max_examples=40, deadline=None)
def test_a_garbled_message_is_refused(garbage: bytes) -> None:
    supervisor, worker = pair()
    worker.connection.sendall(garbage + b"\n")
    with pytest.raises(ProtocolError):
        supervisor.receive()


def test_a_message_that_was_changed_is_refused() -> None:
    supervisor, worker = pair()
    here, there = socket.socketpair()
    original, worker.connection = worker.connection, there
    worker.send({"op": "stop", "query": "q1"})
    line = here.recv(1000)
    original.sendall(line.replace(b"q1", b"q2"))
    with pytest.raises(ProtocolError, match="did not send so"):
        supervisor.receive()


def test_a_message_that_is_repeated_or_sent_back_is_refused() -> None:
    supervisor, worker = pair()
    here, there = socket.socketpair()
    original, worker.connection = worker.connection, there
    worker.send({"op": "report"})
    line = here.recv(1000)
    original.sendall(line + line)
    assert supervisor.receive() == {"op": "report"}
    with pytest.raises(ProtocolError):
        supervisor.receive()
    supervisor.connection.sendall(line)
    worker.connection = original
    with pytest.raises(ProtocolError):
        worker.receive()


def test_a_message_without_end_is_refused() -> None:
    supervisor, worker = pair()
    flood = threading.Thread(target=_flood, args=(worker.connection,))
    flood.start()
    with pytest.raises(ProtocolError, match="more than"):
        supervisor.receive()
    supervisor.close()
    flood.join()


def _flood(connection: socket.socket) -> None:
    try:
        for _ in range(40):
            connection.sendall(b"x" * (1 << 16))
    except OSError:
        pass


def test_tokens_are_made_private_and_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    path = tmp_path / "token"
    make_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(read_token(path)) == 64
    os.chmod(path, 0o644)
    with pytest.raises(UsageError, match="mode 0600"):
        read_token(path)
    with pytest.raises(UsageError, match="no token"):
        read_token(tmp_path / "nowhere")
    monkeypatch.setenv(VARIABLE, "short")
    with pytest.raises(UsageError, match="too short"):
        read_token(path)


@pytest.mark.parametrize(
    "said", [b'{"nonce": "\\ud800"}', '{"nonce": "é"}'.encode(), b'{"nonce": 3}', b"[]", b"\xff"]
)
def test_nonsense_in_a_handshake_is_refused_like_any_stranger(said: bytes) -> None:
    here, there = socket.socketpair()
    here.sendall(said + b"\n")
    with pytest.raises(ProtocolError):
        join(there, TOKEN, "w1")


def test_somebody_who_does_not_listen_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "SEND_S", 1)
    supervisor, _worker = pair()
    text = "x" * 10_000_000  # more than any buffer takes
    with pytest.raises(BlockingIOError):
        supervisor.send({"op": "start", "query": text})
    with pytest.raises(OSError, match="Bad file descriptor"):
        supervisor.send({"op": "stop"})
