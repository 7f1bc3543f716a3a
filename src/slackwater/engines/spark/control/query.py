"""One query as the controller remembers it between two snapshots."""

from dataclasses import replace

from slackwater.core.model import (
    Outlook,
    Phase,
    QueryMetrics,
    QuerySpec,
    QueryState,
    Sweep,
)
from slackwater.engines.spark.progress import QueryObserver
from slackwater.ipc.messages import Told
from slackwater.ipc.server import Client
from slackwater.metrics.promises import PromiseObserver
from slackwater.metrics.results import ResultObserver


class Query:
    """One query, with what must be remembered between two snapshots.

    Parameters
    ----------
    states
        Of all queries, in their order: its own is kept there, so that a snapshot of hundreds is
        one copy of a list.
    """

    def __init__(self, spec: QuerySpec, states: list[QueryState]) -> None:
        self._states, self.place = states, len(states)
        states.append(QueryState(spec))
        self.observer = QueryObserver()
        self.results = ResultObserver()
        self.promises = PromiseObserver()
        self.looked_s: float | None = None  # when it was admitted before it was last admitted
        self.stage = ""  # what its last admission was for, as far as the policy says
        self.gate: Client | None = None  # where its gate is
        self.seq = 0  # of its latest arrival; a grant carries it, so that a stale one is ignored
        self._waits_since_s = 0.0  # when it came to its gate for its last grant
        self._sweep: Sweep | None = None  # as parts of the query elsewhere have told
        self._beyond = Outlook()

    @property
    def state(self) -> QueryState:
        return self._states[self.place]

    @state.setter
    def state(self, state: QueryState) -> None:
        self._states[self.place] = state

    def hear(self, told: Told) -> None:
        """Take what another part of the query has seen or will cost."""
        if told.sweep is not None:
            self._sweep = told.sweep
        if told.beyond is not None:
            self._beyond = told.beyond
        self.state = replace(self.state, metrics=self.heard(self.state.metrics))

    def hear_input(self, has_input: bool | None) -> bool:
        """Take it whether there is more than was read; return whether that is new."""
        if self.state.has_input is has_input:
            return False
        self.state = replace(self.state, has_input=has_input)
        return True

    def heard(self, metrics: QueryMetrics) -> QueryMetrics:
        """Return what its batches show together with what was heard."""
        if self._sweep is None and self._beyond == Outlook():
            return metrics
        return replace(metrics, sweep=self._sweep, beyond=self._beyond)

    def wait_on(self, now_s: float) -> None:
        """Go on waiting since the first arrival: its grant came too early and let nothing run."""
        since_s, before = self._waits_since_s, self.state
        self.enter("waiting", now_s)
        self.hear_input(before.has_input)
        if before.phase == "running":
            self.state = replace(self.state, since_s=since_s, admissions=before.admissions - 1)

    def enter(self, phase: Phase, now_s: float, metrics: QueryMetrics | None = None) -> None:
        """Set the phase."""
        before = self.state
        if phase == "running" and before.phase == "waiting":
            self._waits_since_s, self.looked_s = before.since_s, before.admitted_s
        self.state = QueryState(
            spec=before.spec,
            phase=phase,
            since_s=now_s,
            admitted_s=now_s if phase == "running" else before.admitted_s,
            admissions=before.admissions + (phase == "running"),
            metrics=before.metrics if metrics is None else metrics,
            # A trigger may have read it; one that is given back has not.
            has_input=before.has_input if phase == "running" else None,
        )
