"""A server and its clients over a real socket."""

import logging
import math
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from slackwater.core import RealClock, SlackwaterError
from slackwater.core.model import Decision, Figures, QuerySpec
from slackwater.core.windows import Deadlines, Window
from slackwater.ipc import unix_socket
from slackwater.ipc.client import Refused, answers, ask
from slackwater.ipc.framing import Decoder, LineBuffer, ProtocolError, encode
from slackwater.ipc.messages import Note, Notes, spec_message
from slackwater.ipc.questions import (
    Ask,
    AskDecisions,
    AskStatus,
    Decisions,
    Failure,
    Question,
    answer,
    read_from_gate,
    read_question,
)
from slackwater.ipc.server import Client, Server
from tests.waiting import eventually


class Echo:
    """Answers every question with what was asked, and keeps who has gone."""

    def __init__(self, path: Path) -> None:
        self.gone = 0
        self.server = Server(path, RealClock(), read_question, self)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def received(self, client: Client, question: Question | Ask) -> bool:
        if question.what == "crash":
            raise KeyError("a mistake of ours")
        value = Failure("no") if question.what == "refuse" else {"asked": question.what}
        self.server.send(client, answer(value))
        return False

    def dropped(self, client: Client) -> None:
        self.gone += 1

    def close(self) -> None:
        self._closed.set()
        self.server.wake()
        self._thread.join()
        self.server.close()

    def _run(self) -> None:
        while not self._closed.is_set():
            self.server.wait(math.inf)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "e.sock"


@pytest.fixture
def echo(path: Path) -> Iterator[Echo]:
    running = Echo(path)
    yield running
    running.close()


def test_a_question_is_answered_in_its_type(path: Path, echo: Echo) -> None:
    assert ask(path, AskStatus(), dict[str, str]) == {"asked": "status"}
    with pytest.raises(ProtocolError, match="Expected `int`"):
        ask(path, AskStatus(), dict[str, int])
    with pytest.raises(Refused, match="no"):
        ask(path, Ask("refuse"), dict[str, str])


@pytest.mark.parametrize("said", [b"hello\n", b'{"op":"gone","query":"q"}\n', b'{"op":"ask"}\n'])
def test_what_does_not_fit_ends_that_connection_with_one_line(
    path: Path, echo: Echo, caplog: pytest.LogCaptureFixture, said: bytes
) -> None:
    with caplog.at_level(logging.WARNING), unix_socket.connect(path, 20) as stranger:
        stranger.sendall(said)
        assert stranger.recv(100) == b""
    (record,) = caplog.records
    assert repr(said.rstrip())[:20] in record.getMessage()
    assert answers(path)


def test_a_mistake_in_handling_ends_that_connection_only(path: Path, echo: Echo) -> None:
    with unix_socket.connect(path, 20) as patient:
        with pytest.raises(SlackwaterError, match="closed the connection"):
            ask(path, Ask("crash"), object)
        patient.sendall(encode(AskStatus()))
        assert b"status" in patient.recv(1000)
    eventually(lambda: echo.gone == 2)


def test_a_socket_that_is_closed_leaves_nothing(path: Path) -> None:
    echo = Echo(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    echo.close()
    assert not path.exists()
    assert not answers(path)


def test_a_stranger_is_not_heard(path: Path, echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slackwater.ipc.server.may_talk", lambda connection: False)
    assert not answers(path)


def test_who_may_talk() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    assert unix_socket.may_talk(ours)
    ours.close()
    theirs.close()


def test_lines_come_in_pieces() -> None:
    buffer = LineBuffer()
    line = encode(AskDecisions(last=3))
    pieces = [line[at : at + 7] for at in range(0, len(line), 7)]
    found = [each for piece in pieces for each in buffer.feed(piece)]
    assert [read_from_gate(each) for each in found] == [AskDecisions(last=3)]


def test_infinity_comes_through() -> None:
    """JSON has no word for it."""
    session = Window("session", math.inf, math.inf)
    spec = QuerySpec("q", math.inf, math.inf, Deadlines((session,)))
    found = read_from_gate(encode(spec_message(spec)))
    assert found.spec() == spec  # type: ignore[union-attr]


def test_numbers_of_numpy_are_numbers(path: Path) -> None:
    """A policy works with them."""
    figures = Figures("sweep", slack_s=np.float64(0.5), cost_s=np.float64("inf"))
    decision = Decision(1.0, "q", "due", np.float64(0.25), (), (), True, figures)
    line = bytes(answer((decision,)).value)
    assert b'"slack_s":0.5' in line
    assert b'"cost_s":null' in line


def test_half_a_character_is_no_reason_to_be_silent() -> None:
    """File names, and so errors, may hold what is no text."""
    notes = Notes("shop", notes={"q": Note(error=os.fsdecode(b"no file \xe9"))})
    found = read_from_gate(encode(notes))
    assert isinstance(found, Notes)
    assert found.notes["q"].error == "no file ?"


def test_decisions_are_read_as_they_were_made() -> None:
    decision = Decision(1.0, "q", "due", 0.25, ("r",), (), True, Figures("sweep", 0.5))
    found: Decisions = Decoder[Decisions](Decisions).decode(bytes(answer((decision,)).value))
    assert found == (decision,)
