"""Queries that look to a controller like Spark's, in real time, without Spark."""

import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from slackwater.core import Deadlines, InputStream, QuerySpec, Window
from slackwater.ipc.client import Link
from slackwater.ipc.messages import Arrive, Command, Grant, Note, Notes, spec_message
from slackwater.ipc.progress import (
    Durations,
    EventTime,
    QueryProgress,
    SourceOffsets,
    StateOperator,
)

BATCH_S = 0.05
DELAY_S = 0.2  # of the watermark


def iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")


class PretendFleet:
    """The agent's part: every grant is a batch that takes a moment and arrives again.

    Parameters
    ----------
    controller
        The socket of one that runs.
    """

    def __init__(self, controller: Path, queries: int = 3, window_s: float = 1.0) -> None:
        self.commands: list[Command] = []
        self.notes: dict[str, Note] = {}
        self._seq: dict[str, int] = {}
        self._watermark_s: dict[str, float] = {}
        self._window_s = window_s
        self._names = [f"query-{number}" for number in range(queries)]
        self._closed = False
        self._link = Link(controller, self._on_grant, self._on_lease, self.commands.append)
        self._link.start()
        assert self._link.wait_held(60)

    def close(self) -> None:
        self._closed = True
        self._link.close()

    def note(self, **notes: Note) -> None:
        """Tell what only a fleet knows."""
        self.notes |= notes
        self._link.send(Notes("pretence", notes=dict(self.notes)))

    def _on_lease(self, held: bool) -> None:
        if not held:
            return
        for number, name in enumerate(self._names):
            window = Window("tumbling", self._window_s, self._window_s, offset_s=number * 0.1)
            deadlines = Deadlines((window,), (InputStream("pretended", "at", DELAY_S),))
            spec = QuerySpec(name, 1.0 + number % 3, 10.0, deadlines, target_s=0.5)
            self._link.send(spec_message(spec))
            self._arrive(name, None)
        self.note()

    def _on_grant(self, grant: Grant) -> None:
        if not self._closed:
            threading.Timer(BATCH_S, self._run, (grant.query, time.time())).start()

    def _run(self, name: str, start_s: float) -> None:
        """Reads all events up to its start."""
        ran_with_s = self._watermark_s.get(name, start_s - DELAY_S - self._window_s)
        self._watermark_s[name] = start_s - DELAY_S
        took_ms = round((time.time() - start_s) * 1000)
        progress = QueryProgress(
            iso(start_s),
            100,
            Durations(add_batch=took_ms, trigger_execution=took_ms),
            EventTime(max=iso(start_s), watermark=iso(ran_with_s)),
            sources=(SourceOffsets({"n": 90}, {"n": 97}),),
            state_operators=(StateOperator(num_rows_dropped_by_watermark=1),),
        )
        self._arrive(name, progress)

    def _arrive(self, name: str, progress: QueryProgress | None) -> None:
        self._seq[name] = self._seq.get(name, 0) + 1
        watermark_s = self._watermark_s.get(name)
        watermark_ms = None if watermark_s is None else round(watermark_s * 1000)
        self._link.send(Arrive(name, self._seq[name], progress, watermark_ms))
