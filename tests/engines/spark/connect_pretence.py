"""A Connect session whose server is pretended: PySpark's own client of queries and listeners."""

import json
import queue
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql.connect.proto import commands_pb2
from pyspark.sql.connect.streaming.query import StreamingQueryManager
from pyspark.sql.streaming.listener import QueryStartedEvent

_TERMINATED = commands_pb2.StreamingQueryEventType.QUERY_TERMINATED_EVENT
_PROGRESS = commands_pb2.StreamingQueryEventType.QUERY_PROGRESS_EVENT
NOBODY = str(uuid.UUID(int=0))


class Client:
    """Answers commands as a server does, and hands out events in their order."""

    def __init__(self) -> None:
        self.active: dict[str, str] = {}  # names by runs
        self.unstoppable: set[str] = set()  # runs
        self.gone = False
        self.late = False  # events are held back until the listener is removed
        self.before_active: Callable[[], None] = lambda: None
        self.at_removal: Callable[[], None] = lambda: None  # before the last events are out
        self._events: queue.Queue[Any] = queue.Queue()
        self._held_back: list[Any] = []

    def execute_command_as_iterator(self, command: Any) -> Iterator[dict[str, Any]]:
        added = commands_pb2.StreamingQueryListenerEventsResult(listener_bus_listener_added=True)
        yield {"streaming_query_listener_events_result": added}
        while (event := self._events.get()) is not None:
            result = commands_pb2.StreamingQueryListenerEventsResult(events=[event])
            yield {"streaming_query_listener_events_result": result}

    def execute_command(self, command: Any) -> tuple[None, dict[str, Any], None]:
        if self.gone:
            raise ConnectionError("failed to connect to all addresses")
        kind = command.WhichOneof("command_type")
        answer = getattr(self, f"_{kind}")(getattr(command, kind))
        return None, {f"{kind}_result": answer}, None

    def tell(self, kind: Any, **event: Any) -> None:
        """Hand out an event."""
        told = commands_pb2.StreamingQueryListenerEvent(
            event_type=kind, event_json=json.dumps(event)
        )
        self._held_back.append(told) if self.late else self._events.put(told)

    def _streaming_query_manager_command(self, command: Any) -> Any:
        self.before_active()
        result = commands_pb2.StreamingQueryManagerCommandResult()
        for run, name in self.active.items():
            found = result.active.active_queries.add(name=name)
            found.id.id, found.id.run_id = NOBODY, run
        result.active.SetInParent()
        return result

    def _streaming_query_command(self, command: Any) -> Any:
        run = command.query_id.run_id
        if run in self.unstoppable:
            raise TimeoutError("its sink does not end")
        del self.active[run]
        self.tell(_TERMINATED, id=NOBODY, runId=run, exception=None, errorClassOnException=None)
        return commands_pb2.StreamingQueryCommandResult()

    def _streaming_query_listener_bus_command(self, command: Any) -> None:
        self.at_removal()
        for event in self._held_back:
            self._events.put(event)
        self._events.put(None)


class Session:
    """As far as a fleet looks at it."""

    def __init__(self) -> None:
        self.client = Client()
        self.streams = StreamingQueryManager(self)  # type: ignore[arg-type]

    def start(self, name: str) -> str:
        """Start a query; return its run."""
        run = str(uuid.uuid4())
        self.client.active[run] = name
        event = QueryStartedEvent(uuid.UUID(NOBODY), uuid.UUID(run), name, "", set())
        self.streams._sqlb.post_to_all(event)
        return run

    def stop(self, run: str) -> None:
        """Stop a query, as its user does."""
        next(each for each in self.streams.active if str(each.runId) == run).stop()

    def progress(self, name: str, run: str, batch: int = 0) -> None:
        self.client.tell(
            _PROGRESS,
            progress={
                "id": NOBODY,
                "runId": run,
                "name": name,
                "timestamp": f"2026-01-01T00:00:{batch:02}.000Z",
                "batchId": batch,
                "batchDuration": 10,
                "durationMs": {"triggerExecution": 10},
                "stateOperators": [],
                "sources": [],
                "sink": {"description": "noop", "numOutputRows": 1},
                "numInputRows": 1,
            },
        )

    def hearing(self) -> threading.Thread | None:
        """Return the thread that hears events, until the listener is removed."""
        found: threading.Thread | None = self.streams._sqlb._execution_thread
        return found


Session.__module__ = "pyspark.sql.connect.session"  # that is how a session of Connect is known
