"""A streaming query of a fleet: as ever, over all of its runs."""

import math
from collections.abc import Callable
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from slackwater.core.clock import Deadline
from slackwater.engines.spark.queries.launcher import Launcher
from slackwater.engines.spark.queries.record import QueryRecord
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.status import FleetStatus


class FleetQuery(StreamingQuery):
    """What :meth:`Fleet.start` returns: always the query's present run.

    A query that is paused, or started again because it lost a Python process, has another run
    afterwards; this handle is that run's, too. ``stop`` stops it for good, also while it is paused,
    and ``awaitTermination`` waits until it will not run again by itself.

    Parameters
    ----------
    record
        Of the query, with its first run.
    status
        Of the fleet with this query alone.
    """

    def __init__(
        self,
        registry: Registry,
        launcher: Launcher,
        record: QueryRecord,
        status: Callable[[], FleetStatus],
    ) -> None:
        self._registry = registry
        self._launcher = launcher
        self._last = record
        self._status = status

    @property
    def _record(self) -> QueryRecord:
        """The query as it is now, or as it was when it left the fleet."""
        found = self._registry.get(self._last.name)
        if found is not None and found.born == self._last.born and found.query is not None:
            self._last = found
        return self._last

    @property
    def _jsq(self) -> Any:  # what all that we inherit goes by
        query = self._record.query
        assert query is not None
        return query._jsq

    def stop(self) -> None:
        self._launcher.stop(self._record)

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        limit = Deadline(timeout)
        while self._goes_on():
            if limit.passed:
                return False
            self._registry.wait_change(min(limit.left_s, 0.5))
        query = self._record.query
        assert query is not None
        # At once, with the exception if there was one; or what is left, if it is no longer ours.
        left_s = None if limit.left_s == math.inf else max(limit.left_s, 0.001)
        return query.awaitTermination(left_s)  # type: ignore[arg-type]

    def _goes_on(self) -> bool:
        """Return whether the fleet has it, and it has not ended."""
        found = self._registry.get(self._last.name)
        return found is not None and found.born == self._last.born and not found.ended

    def _repr_html_(self) -> str:
        return self._status()._repr_html_()
