"""The source gate: holds a query by a data source of its own. Public Spark API only.

A streaming source that never has a row is unioned as the left child with the user's DataFrame.
Spark asks the sources of a query for their latest offsets from left to right, so the query stands
still while this one waits for its grant: after the previous batch was committed, before the offsets
of any other source are taken. Its offset never changes, so it never causes a batch.

The reader lives in a Python process of its own that Spark starts for each query. That process talks
to the controller directly and opens by itself when the lease is lost.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.plans.discovery import GATE_FORMAT
from slackwater.engines.spark.session.interpreter import use_this_interpreter
from slackwater.engines.spark.session.versions import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
    ReadAllAvailable,
    ReadLimit,
    SupportsTriggerAvailableNow,
    refuse_missing_python_sources,
)
from slackwater.engines.spark.sources.process import end_quietly
from slackwater.engines.spark.sources.row_limits import RowLimits
from slackwater.ipc.client import Link
from slackwater.ipc.messages import Arrive, Grant

OFFSET = {"g": 0}
# Spark keeps the sources of a batch in a Scala map, which keeps its order for up to four entries.
MOST_OTHER_SOURCES = 3
CONNECT_S = 0.5  # how long the first trigger waits for a controller before it runs unheld


class GateSource(DataSource):
    """``spark.readStream.format("slackwater-gate")``; use :func:`gate` to make one."""

    @classmethod
    def name(cls) -> str:
        return GATE_FORMAT

    def streamReader(self, schema: StructType) -> "GateReader":
        return GateReader(dict(self.options))


class GateReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Waits in ``latestOffset`` until the controller grants.

    Spark pickles readers, so all that lives (a connection, a thread) is made when first needed.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._turnstile: _Turnstile | None = None

    def initialOffset(self) -> dict[str, int]:
        return OFFSET

    def latestOffset(
        self, start: dict[str, int] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, int]:
        if self._turnstile is None:
            self._turnstile = _Turnstile(self._options)
        self._turnstile.pass_through()
        return OFFSET

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing: without this Spark would read all that the run finds in a single batch."""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return iter(())

    def stop(self) -> None:
        if self._turnstile is not None:
            self._turnstile.close()
        end_quietly()


class _Turnstile:
    """Lets one trigger through for each grant, and all of them while the lease is lost."""

    def __init__(self, options: dict[str, str]) -> None:
        self._query = options["query"]
        self._max_wait_s = float(options["max_wait_s"])
        self._row_limits = RowLimits()
        self._row_limits.link(self._query, map(Path, json.loads(options["limited"])))
        self._changed = threading.Condition()
        self._seq = 0  # arrivals so far
        self._granted = 0  # the latest of them that was granted
        self._holding = False
        self._hold_s = 0.0  # what the load asks for
        self._link = Link(
            Path(options["socket"]), self._on_grant, self._on_lease, on_hold=self._on_hold
        )
        self._link.start()
        self._link.wait_held(CONNECT_S)

    def pass_through(self) -> None:
        with self._changed:
            self._seq += 1
        self._arrive()
        with self._changed:
            self._changed.wait_for(
                lambda: not self._holding or self._granted >= self._seq,
                max(self._max_wait_s, self._hold_s),
            )

    def close(self) -> None:
        self._link.close()

    def _arrive(self) -> None:
        self._link.send(Arrive(self._query, self._seq))

    def _on_grant(self, grant: Grant) -> None:
        with self._changed:
            if grant.seq != self._seq:
                return  # stale: that trigger has gone on without it
            self._row_limits.set_rows(self._query, grant.rows)
            self._granted = self._seq
            self._changed.notify_all()

    def _on_hold(self, hold_s: float) -> None:
        self._hold_s = hold_s

    def _on_lease(self, holds: bool) -> None:
        with self._changed:
            self._holding = holds
            unanswered = self._granted < self._seq
            if not holds:
                self._granted = self._seq  # who waits goes on, even if the lease is back at once
                self._row_limits.clear()
            self._changed.notify_all()
        if holds and unanswered:
            self._arrive()


def refuse_ungatable(name: str, df: DataFrame, sources: int) -> None:
    """Refuse a DataFrame that a source gate cannot hold."""
    if not df.isStreaming:
        raise UsageError(f"{name}: a batch DataFrame cannot be gated; read it with readStream")
    if sources > MOST_OTHER_SOURCES:
        raise UsageError(
            f"{name} has {sources} sources; Spark asks the gate first only beside "
            f"{MOST_OTHER_SOURCES} others: use the clock gate (fleet.start)"
        )


def gate(
    spark: SparkSession,
    df: DataFrame,
    *,
    query: str,
    socket: Path,
    limited: Sequence[Path],
    max_wait_s: float,
) -> DataFrame:
    """Return ``df`` behind a source gate."""
    refuse_missing_python_sources("the source gate")
    use_this_interpreter(spark)
    spark.dataSource.register(GateSource)
    source = (
        spark.readStream.format(GATE_FORMAT)
        .schema(df.schema)
        .option("query", query)
        .option("socket", str(socket))
        .option("limited", json.dumps([str(path) for path in limited]))
        .option("max_wait_s", str(max_wait_s))
        .load()
    )
    return source.union(df)
