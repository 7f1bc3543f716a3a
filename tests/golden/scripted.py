"""A controller on a real socket whose clock stands still, and what two queries tell it."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from slackwater.core import Deadlines, InputStream, QuerySpec, VirtualClock, Window
from slackwater.core.model import Outlook, Sweep
from slackwater.engines.spark.control.service import ControllerService, ControllerSettings
from slackwater.engines.spark.progress import read_progress
from slackwater.ipc.framing import encode
from slackwater.ipc.messages import (
    Accuracy,
    Arrive,
    Done,
    FromGate,
    Gone,
    MemoryUse,
    Note,
    Notes,
    Progress,
    Told,
    spec_message,
)
from slackwater.ipc.questions import (
    Ask,
    AskCost,
    AskDecisions,
    AskStatus,
    AskWatch,
    Control,
    Question,
)

START_S = 1_700_000_000.0

WINDOWS = (Window("tumbling", 3.0, 3.0, offset_s=0.5), Window("sliding", 10.0, 2.0))
INPUTS = (InputStream("ads", "at", 0.5), InputStream("clicks", "seen", 2.0))
SPECS = [
    QuerySpec("ads", 2.0, 8.0, Deadlines(WINDOWS, INPUTS, "append"), target_s=1.5),
    QuerySpec("views", keep_open_s=0.25, pace_s=0.5),
]


def iso(at_s: float) -> str:
    """Of a moment after the start, as Spark writes it."""
    seconds, milliseconds = divmod(round(at_s * 1000), 1000)
    return f"2023-11-14T22:13:{20 + seconds:02d}.{milliseconds:03d}Z"


def progress(at_s: float, watermark_s: float) -> dict[str, Any]:
    """Of a batch of 0.25 s that began so long after the start, as Spark reports it."""
    return {
        "id": "0",
        "runId": "1",
        "name": "ads",
        "timestamp": iso(at_s),
        "batchId": 7,
        "numInputRows": 500,
        "inputRowsPerSecond": 100.0,
        "durationMs": {
            "addBatch": 150,
            "commitOffsets": 20,
            "latestOffset": 5,
            "queryPlanning": 10,
            "triggerExecution": 250,
        },
        "eventTime": {"avg": iso(at_s), "max": iso(at_s), "watermark": iso(watermark_s)},
        "stateOperators": [{"operatorName": "save", "numRowsTotal": 40, "memoryUsedBytes": 9000}],
        "sources": [{"description": "d", "endOffset": {"n": 90}, "latestOffset": {"n": 97}}],
        "sink": {"description": "s", "numOutputRows": 3},
    }


def arrival(seq: int, at_s: float | None = None, watermark_s: float = 0.0) -> Arrive:
    """A held query is at its gate, with the batch that it has done."""
    if at_s is None:
        return Arrive("ads", seq, None, None, ())
    return Arrive(
        "ads",
        seq,
        progress=read_progress(progress(at_s, watermark_s)),
        watermark_ms=round((START_S + at_s - 2.0) * 1000),
        input_watermarks_ms=(round((START_S + 3) * 1000),) * 2,
    )


NOTES = {"ads": Note("r", None, "clock", 1, "RuntimeError: no", Accuracy(0.5, 0.8, 0.7, 0.75))}

Said = FromGate | Question | Ask

# By the second in which it is said.
SCRIPT: list[tuple[float, list[Said]]] = [
    (0.0, [spec_message(spec) for spec in SPECS]),
    (0.0, [MemoryUse(used=600, limit=1000, executors=0)]),
    (0.1, [arrival(1), Arrive("views", 1)]),
    (0.4, [Done("ads")]),
    (0.5, [Progress("views", read_progress(progress(0.2, 0.1)))]),
    (0.6, [Done("views", at=START_S + 0.6)]),
    (3.6, [arrival(2, 3.3, 2.9), Done("ads")]),
    (4.6, [arrival(3, 4.3, 4.6)]),
    (4.7, [Told("ads", Sweep(3.0, 3.4), Outlook(0.5, 1e-05))]),
    (4.8, [Notes("shop", "clock", NOTES)]),
    (4.9, [AskStatus()]),
    (4.9, [AskDecisions(last=2, query="ads")]),
    (4.9, [AskWatch(happened=1, decided=1)]),
    (4.9, [AskCost()]),
    (4.9, [Ask("nonsense")]),
    (5.0, [Control(action="pause", query="ads")]),
    (5.0, [Control(action="policy", policy="kling")]),
    (5.1, [Control(action="off")]),
    (6.5, [Gone("views")]),
]


class ScriptedController:
    """A controller that turns when it is told to, and somebody at the other end of its socket.

    Parameters
    ----------
    folder
        Of the socket.
    clock
        The clock that it sees.
    """

    def __init__(self, folder: Path, clock: VirtualClock) -> None:
        self.path = folder / "shop.sock"
        self.clock = clock
        settings = ControllerSettings(str(self.path), "klink", slots=1, guard=False)
        self._service = ControllerService(settings, lambda: 0.25)
        self._gate = socket.socket(socket.AF_UNIX)
        self._gate.connect(str(self.path))
        self._turn()
        self._gate.setblocking(False)

    def run(self, stop: Callable[[], bool]) -> None:
        """Answer others; the socket is closed at the end."""
        self._gate.close()
        self._service.run(stop)

    def close(self) -> None:
        self._gate.close()
        self._service.driver.close()

    def say(self, at_s: float, message: Said) -> list[str]:
        """What it says to a message that comes so long after the start, as it is on the wire."""
        self.clock.advance_to(START_S + at_s)
        return [*self.hear(), *self._said(message)]

    def hear(self) -> list[str]:
        """What it says by itself."""
        self._turn()
        try:
            return self._gate.recv(1 << 20).decode().splitlines()
        except BlockingIOError:
            return []

    def _said(self, message: Said) -> list[str]:
        self._gate.sendall(encode(message))
        return self.hear()

    def _turn(self) -> None:
        """Twice, because who has just connected has said nothing yet."""
        for _ in range(2):
            self._service.driver.wait(self.clock.now())
            self._service.controller.cycle()


def told(controller: ScriptedController) -> Iterator[tuple[Said, list[str]]]:
    """Every message of the script, and what came back."""
    for at_s, messages in SCRIPT:
        for message in messages:
            yield message, controller.say(at_s, message)
