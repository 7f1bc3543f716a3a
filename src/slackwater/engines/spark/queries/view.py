"""What a fleet shows of its queries."""

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from slackwater.common.listing import unknown_query
from slackwater.core.clock import Deadline
from slackwater.core.controller import REMEMBERED
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.control.client import FleetControl
from slackwater.engines.spark.queries.agent import Agent, ProgressSink
from slackwater.engines.spark.queries.handle import FleetQuery
from slackwater.engines.spark.queries.launcher import Launcher
from slackwater.engines.spark.queries.record import Accuracies, QueryRecord
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.status import FleetStatus, query_status

LOOK_S = 0.1


class FleetView:
    """The part of :class:`~slackwater.engines.spark.fleet.Fleet` that changes nothing."""

    name: str
    policy: str
    slots: int
    gate_kind: str
    gate_reason: str
    _registry: Registry
    _agent: Agent
    _control: FleetControl
    _launcher: Launcher

    @property
    def queries(self) -> dict[str, StreamingQuery]:
        """The queries that were started or held, by name."""
        return {r.name: self._handle(r) for r in self._registry.all() if r.query is not None}

    @property
    def ended(self) -> set[str]:
        """Names of queries that will not run again by themselves."""
        return {record.name for record in self._registry.all() if record.ended}

    @property
    def failures(self) -> dict[str, str]:
        """First lines of the errors of the queries that failed, by name."""
        return {r.name: r.error for r in self._registry.all() if r.error is not None}

    def status(self, query: str | None = None, *, ask_sources: bool = True) -> FleetStatus:
        """Return every query with its state and figures; prints as a table, also in notebooks.

        Parameters
        ----------
        query
            Only this one's.
        ask_sources
            Sources that count are asked how many rows wait. False: it is as the last batch said.
        """
        try:
            known, is_open = self._launcher.look()
            controller = "open" if is_open else "running"
        except SlackwaterError:
            known, controller = {}, "off: queries run as plain Spark"
        records = [r for r in self._registry.all() if query in (None, r.name)]
        runs = [r.run for r in records if ask_sources and r.present and r.run is not None]
        left = self._agent.rows_left(runs)
        rows = tuple(query_status(r, known.get(r.name), left.get(r.run or "")) for r in records)
        gate = f"{self.gate_kind} ({self.gate_reason})"
        return FleetStatus(self.name, self.policy, gate, controller, self.slots, rows)

    def accuracy(self, name: str) -> Accuracies | None:
        """Return how much of its input a query processes; None if it is never shed."""
        record = self._registry.get(name)
        return None if record is None else record.accuracy()

    def explain(self, last: int = 20, query: str | None = None) -> list[dict[str, Any]]:
        """Return the last decisions, newest first: which query, why, how long it waited.

        Parameters
        ----------
        last
            How many, at most the 1,000 that are kept; ``slackwater record`` keeps all.
        query
            Only this one's.
        """
        if not 1 <= last <= REMEMBERED:
            raise UsageError(
                f"explain shows between 1 and {REMEMBERED} decisions, not {last}: "
                "older ones are forgotten; `slackwater record` keeps all"
            )
        found = self._control.decisions(last, query)
        if query is not None and not found and self._registry.get(query) is None:
            raise unknown_query(query, [record.name for record in self._registry.all()])
        return found

    @property
    def controller_pid(self) -> int | None:
        """Of the controller's process; ``None`` when it is a thread."""
        return self._control.pid

    def controller_cpu_s(self) -> float:
        """Return the CPU time that the controller has used so far."""
        return self._control.cpu_s()

    def on_progress(self, sink: ProgressSink) -> None:
        """Call ``sink(query name, progress)`` for every progress event. It must return at once."""
        self._agent.on_progress(sink)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until no query is active, at most ``timeout_s``; return whether all have ended."""
        limit = Deadline(timeout_s)
        while not all(record.ended for record in self._registry.all()):
            if limit.passed:
                return False
            self._registry.wait_change(min(LOOK_S, limit.left_s))
        return True

    def wait_ready(self, timeout_s: float) -> bool:
        """Wait until every query has reached its first trigger or failed; return whether."""
        limit = Deadline(timeout_s)
        while self._launcher.starting():
            if limit.passed:
                return False
            self._registry.wait_change(min(LOOK_S, limit.left_s))
        return True

    def _handle(self, record: QueryRecord) -> StreamingQuery:
        """Return what its user has of a query: of one that was held, the query itself."""
        assert record.query is not None
        if record.writer is None:
            return record.query

        def status() -> FleetStatus:
            return self.status(record.name)

        return FleetQuery(self._registry, self._launcher, record, status)

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()
