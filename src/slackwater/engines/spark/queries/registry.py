"""The queries of a fleet: the only owner of their specs, states and runs.

Everybody else reads records, which never change, and asks for changes by name. Changes are made
under one lock, so that none is lost, and told to subscribers in their order, outside of it.
"""

import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import fields, replace
from itertools import count
from typing import Any

from slackwater.common.exceptions import first_line
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.model import QuerySpec
from slackwater.engines.spark.queries.failures import MAX_RESTARTS, lost_a_worker
from slackwater.engines.spark.queries.record import TRANSITIONS, QueryRecord, State

log = logging.getLogger("slackwater.fleet")


class IllegalTransition(SlackwaterError):
    """A change of state that the table does not have: a mistake of ours."""


_SPEC_FIELDS = {each.name for each in fields(QuerySpec)} - {"name"}
Subscriber = Callable[[QueryRecord | None, QueryRecord], None]  # before and after


class Registry:
    """All queries of one fleet.

    Parameters
    ----------
    strict
        Whether a change of state that the table does not have raises, or is logged and left out.
    """

    strict = False

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._records: dict[str, QueryRecord] = {}
        self._runs: dict[str, str] = {}  # names by runs, earlier ones included
        self._starts: dict[str, QueryRecord] = {}  # under way, by their marks
        self._versions = count(1)
        self._subscribers: list[Subscriber] = []
        self._changes: deque[tuple[QueryRecord | None, QueryRecord]] = deque()
        self._telling = threading.RLock()  # one thread tells subscribers, in order
        self._at_it = False  # this one, further up

    # -- reading --------------------------------------------------------------------------------

    def get(self, name: str) -> QueryRecord | None:
        with self._lock:
            return self._records.get(name)

    def all(self) -> list[QueryRecord]:
        """Return every query, in the order in which they came."""
        with self._lock:
            return list(self._records.values())

    def of_run(self, run: str) -> QueryRecord | None:
        """Return the query that a run belongs to, whether that is its present run or not."""
        with self._lock:
            return self._records.get(self._runs.get(run, ""))

    def wait_change(self, limit_s: float) -> None:
        """Wait until some query changes, at most so long."""
        with self._lock:
            self._lock.wait(limit_s)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell ``subscriber`` of every change from now on, in order, one at a time."""
        self._subscribers.append(subscriber)

    # -- changing -------------------------------------------------------------------------------

    def add(self, record: QueryRecord) -> QueryRecord:
        """Take in a query; refuse a name or a run that is there already."""
        with self._lock:
            self._refuse_known(record)
            added = self._put(None, replace(record, born=0))
            if added.run is not None:
                self._runs[added.run] = added.name
        self._tell()
        return added

    def update(
        self,
        name: str,
        *,
        run: str | None = None,
        when: Collection[State] | None = None,
        **changes: Any,
    ) -> QueryRecord | None:
        """Set fields of a query's record or of its spec; return the new record.

        Nothing is changed, and ``None`` is returned, if the query is not there, if it has another
        run than ``run``, or if its state is not one of ``when``.
        """
        if "spec" in changes:
            raise TypeError("name the fields that change: a whole spec may be an old one")
        of_spec = {key: changes.pop(key) for key in _SPEC_FIELDS & changes.keys()}
        return self._change(
            name,
            run,
            when,
            lambda old: replace(old, spec=replace(old.spec, **of_spec), **changes),
        )

    def revise(
        self, name: str, change: Callable[[QuerySpec], QuerySpec], *, run: str | None = None
    ) -> QueryRecord | None:
        """Replace a query's spec by a function of what it is now, which must not call us."""
        return self._change(name, run, None, lambda old: replace(old, spec=change(old.spec)))

    def fail(self, name: str, error: str) -> None:
        """Note that a query has failed, also one that could not even be started."""
        with self._lock:
            old = self._records.get(name)
            new = old or QueryRecord(QuerySpec(name), "none")
            if not new.ended:
                state = State.RESTING if new.refreshed else State.FAILED  # it is tried again
                self._put(old, replace(new, state=state, error=error))
        self._tell()

    def remove(self, name: str, *, born: int | None = None) -> QueryRecord | None:
        """Take a query out; subscribers hear that it is released."""
        with self._lock:
            old = self._records.get(name)
            if old is None or born not in (None, old.born):
                return None
            gone = self._drop(old)
        self._tell()
        return gone

    # -- runs -----------------------------------------------------------------------------------

    def expect(self, record: QueryRecord) -> str:
        """Announce the start of a new query; return the mark that its start is to carry."""
        with self._lock:
            self._refuse_known(record)
            return self._mark(record)

    def expect_again(
        self, name: str, *, born: int, when: State
    ) -> tuple[QueryRecord, str] | tuple[None, None]:
        """Announce another start of a query, if it is still there and in this state.

        From now on it has no run: whatever is heard of the last one is old.
        """
        with self._lock:
            old = self._records.get(name)
            if old is None or old.born != born or old.state is not when:
                return None, None
            error = _kept_error(old)
            cleared = replace(old, state=State.STARTING, run=None, error=error, by_hand=False)
            new = self._put(old, cleared)
            mark = self._mark(new)
        self._tell()
        return new, mark

    def cancel(self, mark: str) -> None:
        """Forget a start that has not come to anything."""
        with self._lock:
            self._starts.pop(mark, None)

    def begin(
        self, mark: str | None, query_name: str | None, query_id: str, run: str
    ) -> QueryRecord | None:
        """Note that a run has begun; return its record to the first that says so.

        It is one that is expected under this mark, or one that is gated by its source and started
        by its user. Any other is none of ours.
        """
        with self._lock:
            if run in self._runs:
                return None
            expected = self._starts.pop(mark or "", None)
            if expected is not None:
                old, begun = self._match(expected, query_name or f"query-{query_id[:8]}")
            else:
                old = self._records.get(query_name or "")
                if old is None or old.gate != "source":
                    return None
                begun = old
            error = _kept_error(begun)
            begun = replace(begun, run=run, state=State.STARTING, error=error)
            self._runs[run] = begun.name
            begun = self._put(old, begun)
        self._tell()
        return begun

    def end(self, run: str, exception: str | None) -> QueryRecord | None:
        """Note that a run has ended; return the record if that was the query's present run."""
        with self._lock:
            old = self._records.get(self._runs.get(run, ""))
            if old is None or old.run != run:
                log.debug("run %s has ended, which is nobody's present run", run)
                return None
            if old.state not in (State.STARTING, State.ACTIVE):
                return old  # it was paused or stopped, and that is known
            new = replace(old, state=State.STOPPED)
            if old.refreshed:
                error = None if exception is None else first_line(exception)
                new = replace(old, state=State.RESTING, error=error)
            elif exception is not None:
                again = (
                    old.writer is not None
                    and old.attempts < MAX_RESTARTS
                    and lost_a_worker(exception)
                )
                state = State.RESTARTING if again else State.FAILED
                new = replace(old, state=state, error=first_line(exception))
            new = self._put(old, new)
        self._tell()
        return new

    # -- under the lock -------------------------------------------------------------------------

    def _mark(self, record: QueryRecord) -> str:
        mark = uuid.uuid4().hex
        self._starts[mark] = record
        return mark

    def _refuse_known(self, record: QueryRecord) -> None:
        others = [each for each in self._starts.values() if each.name]
        known = self._records.get(record.name)
        if known is not None and not known.unstarted:
            others.append(known)
        if any(each.name == record.name for each in others):
            raise UsageError(
                f"the fleet has a query named {record.name!r} already; give this one another"
            )
        if record.run in self._runs:
            raise UsageError(f"the fleet has this query already, as {self._runs[record.run]!r}")

    def _match(self, expected: QueryRecord, name: str) -> tuple[QueryRecord | None, QueryRecord]:
        """Return the record that an expected run continues, if any, and the one that it gets."""
        known = self._records.get(name)
        if known is None:
            return None, replace(expected, spec=replace(expected.spec, name=name))
        if known.born == expected.born:
            return known, known  # started again
        if known.unstarted:  # its DataFrame has a gate: the spec was stated there
            spec = replace(known.spec, target_s=expected.spec.target_s)
            stated_s = known.stated_wait_s
            return known, replace(known, spec=spec, writer=expected.writer, stated_wait_s=stated_s)
        # Its writer gave it the name of another, which has ended: Spark refuses a second that runs.
        self._drop(known)
        return None, replace(expected, spec=replace(expected.spec, name=name))

    def _change(
        self,
        name: str,
        run: str | None,
        when: Collection[State] | None,
        change: Callable[[QueryRecord], QueryRecord],
    ) -> QueryRecord | None:
        with self._lock:
            old = self._records.get(name)
            if old is None or run not in (None, old.run) or (when and old.state not in when):
                log.debug("%s: a change that came too late is left out", name)
                return None
            new = change(old)
            if new == old:
                return old
            if not self._allowed(old, new):
                return None
            new = self._put(old, new)
        self._tell()
        return new

    def _allowed(self, old: QueryRecord, new: QueryRecord) -> bool:
        """Tell whether the table has this change of state; object if not."""
        if new.state is old.state or new.state in TRANSITIONS[old.state]:
            return True
        illegal = f"{old.name} cannot go from {old.state.value} to {new.state.value}"
        if self.strict:
            raise IllegalTransition(illegal)
        log.error("%s", illegal)
        return False

    def _put(self, old: QueryRecord | None, new: QueryRecord) -> QueryRecord:
        if old is not None:
            self._allowed(old, new)  # what Spark has done is noted all the same
        version = next(self._versions)
        new = replace(new, version=version, born=new.born or version)
        self._records[new.name] = new
        self._note(old, new)
        return new

    def _drop(self, old: QueryRecord) -> QueryRecord:
        del self._records[old.name]
        self._runs = {run: name for run, name in self._runs.items() if name != old.name}
        gone = replace(old, state=State.RELEASED, version=next(self._versions))
        self._note(old, gone)
        return gone

    def _note(self, old: QueryRecord | None, new: QueryRecord) -> None:
        self._changes.append((old, new))
        self._lock.notify_all()

    # -- outside the lock -----------------------------------------------------------------------

    def _tell(self) -> None:
        """Tell subscribers what has changed, or wait until the thread that is at it has.

        So they must not wait for a thread that changes something. What they change themselves is
        told next.
        """
        with self._telling:
            if self._at_it:
                return
            self._at_it = True
            try:
                while self._changes:
                    self._tell_one(*self._changes.popleft())
            finally:
                self._at_it = False

    def _tell_one(self, old: QueryRecord | None, new: QueryRecord) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(old, new)
            except Exception:
                log.exception("%s: a change could not be followed", new.name)


def _kept_error(record: QueryRecord) -> str | None:
    """Return what is still to be said of the last run: of a table until one has gone well."""
    return record.error if record.refreshed else None
