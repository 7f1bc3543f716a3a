"""Messages between processes, byte for byte but for the spelling of numbers (1e-05 is 0.00001)."""

import json
import socket
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slackwater.core import SlackwaterError
from slackwater.engines.spark.gates.source import GateReader
from slackwater.ipc.client import Link, Refused, ask
from slackwater.ipc.framing import encode
from slackwater.ipc.questions import AskStatus, Switch
from slackwater.ipc.unix_socket import listen
from slackwater.operations.middleware.control import Control
from slackwater.operations.workers.channel import accept, join
from tests.golden.comparing import compare_lines
from tests.golden.scripted import SCRIPT, ScriptedController, told

DIRECTIVES: list[dict[str, Any]] = [
    {"op": "start", "query": "ads", "epoch": 3.0},
    {"op": "aim", "query": "ads", "accuracy": 0.8, "least": 0.5, "epoch": 3.0},
    {"op": "tell", "query": "ads", "by": "views", "frontiers": [[3.0, 3.4]], "epoch": 3.0},
    {"op": "stop", "query": "ads", "epoch": 3.0},
    {"op": "over", "epoch": 3.0},
]
REPORTS: list[dict[str, Any]] = [
    {"op": "hello", "pid": 1, "cores": 2.0},
    {"op": "report", "used": 0.5, "others": 0.25, "queries": {}},
    {"op": "ended", "query": "ads", "error": None, "ordered": True},
]


def test_a_conversation_with_the_controller(controller: ScriptedController) -> None:
    lines = []
    for message, answers in told(controller):
        lines.append(f"> {spelled(encode(message))}")
        lines += [f"< {spelled(answer)}" for answer in answers]
    compare_lines("messages/controller.txt", lines)


def test_what_a_link_sends(tmp_path: Path) -> None:
    """And that every message is one line."""
    server = listen(tmp_path / "c.sock")
    link = Link(tmp_path / "c.sock", lambda grant: None, lambda held: None)
    link.start()
    connection, _ = server.accept()
    connection.sendall(b'{"op":"beat","open":false}\n')
    assert link.wait_held(20)
    messages = [message for _, each in SCRIPT for message in each]
    link.send(*messages)
    file = connection.makefile()
    assert [file.readline() for _ in messages] == [encode(m).decode() for m in messages]
    link.close()
    connection.close()
    server.close()


def test_a_source_gate(tmp_path: Path) -> None:
    server = listen(tmp_path / "c.sock")
    options = {
        "query": "ads",
        "max_wait_s": "0.01",
        "limited": "[]",
        "socket": f"{tmp_path}/c.sock",
    }
    reader = GateReader(options)
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    connection, _ = server.accept()
    connection.sendall(b'{"op":"beat","open":false}\n')  # who was not heard says it again
    lines = [f"> {connection.makefile().readline().rstrip()}", f"offset {json.dumps(end)}"]
    assert reader._turnstile is not None
    reader._turnstile.close()
    connection.close()
    server.close()
    compare_lines("messages/source-gate.txt", lines)


def test_questions_to_a_middleware(tmp_path: Path) -> None:
    """Those of the command line, and an error."""
    seen: list[Any] = []

    def answer(message: Any) -> Any:
        seen.append(msgspec.to_builtins(message))
        if getattr(message, "policy", None) == "nobody":
            raise SlackwaterError("no policy named 'nobody'")
        return {"policies": []}

    path = tmp_path / "m.sock"
    control = Control(path, answer)
    answers = [
        ask(path, AskStatus(), dict),
        ask(path, Switch(policy="queue-size", on=None), dict),
    ]
    with pytest.raises(Refused) as refused:
        ask(path, Switch(policy="nobody", on=True), dict)
    answers.append({"error": str(refused.value)})
    control.close()
    pairs = zip(seen, answers, strict=True)
    compare_lines(
        "messages/middleware.txt",
        (
            f"{sign} {json.dumps(each)}"
            for pair in pairs
            for sign, each in zip("><", pair, strict=True)
        ),
    )


def test_the_channel_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nonces that are known beforehand, codes are as well."""
    nonces = iter(["0" * 32, "1" * 32])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(nonces))
    token, found = b"a token that is long enough", []
    wires = [socket.socketpair() for _ in range(2)]
    (supervisor_end, upper), (lower, worker_end) = wires
    heard: dict[str, bytearray] = {"supervisor": bytearray(), "worker": bytearray()}
    pumps = [
        threading.Thread(target=pump, args=(upper, lower, heard["supervisor"])),
        threading.Thread(target=pump, args=(lower, upper, heard["worker"])),
    ]
    server = threading.Thread(target=lambda: found.append(accept(supervisor_end, token)))
    for thread in (*pumps, server):
        thread.start()
    worker = join(worker_end, token, "w1")
    server.join()
    (supervisor,) = found
    for message in DIRECTIVES:
        supervisor.send(message)
        assert worker.receive() == message
    for message in REPORTS:
        worker.send(message)
        assert supervisor.receive() == message
    for end in (worker, supervisor):
        end.close()
    for thread in pumps:
        thread.join()
    lines = [f"{who} {line}" for who, said in heard.items() for line in said.decode().splitlines()]
    compare_lines("messages/workers.txt", lines)


def spelled(line: str | bytes) -> str:
    """Write the numbers of a message as Python does; keys keep their order."""
    return json.dumps(json.loads(line), separators=(",", ":"))


def pump(source: socket.socket, target: socket.socket, kept: bytearray) -> None:
    """Pass everything on, and keep it."""
    while data := source.recv(1 << 16):
        kept += data
        target.sendall(data)
