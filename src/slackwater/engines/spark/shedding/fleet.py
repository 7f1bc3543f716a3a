"""The queries of a fleet that may be shed."""

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core.errors import UsageError
from slackwater.engines.spark.queries.launcher import Launcher
from slackwater.engines.spark.queries.record import Accuracies, QueryRecord
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.session.master import is_local
from slackwater.engines.spark.shedding.loop import (
    FIRST_ROWS,
    Quality,
    QualityLoop,
    QualitySettings,
)
from slackwater.engines.spark.shedding.meter import QualityMeter
from slackwater.engines.spark.shedding.shedders import find_shedders, refuse_shared

log = logging.getLogger("slackwater.quality")


class FleetQuality:
    """Finds the shedders of queries as they are started, and pauses those that must stop."""

    def __init__(
        self,
        spark: SparkSession,
        settings: QualitySettings | None,
        registry: Registry,
        launcher: Launcher,
    ) -> None:
        settings = settings or QualitySettings()
        local = is_local(spark.conf.get("spark.master"))
        cores = float(spark.sparkContext.defaultParallelism) if local else None
        if cores is not None and settings.cpus:
            cores = float(len(settings.cpus))
        cores = cores if settings.cores is None else settings.cores
        self._registry = registry
        self._launcher = launcher
        self.loop = QualityLoop(settings, cores, self._pause, self._resume, self._set_pace)
        registry.subscribe(self._on_change)

    def prepare(self, name: str | None, writer: DataStreamWriter, min_accuracy: float) -> None:
        """Refuse a query that cannot be shed, before it is started."""
        if not 0 <= min_accuracy <= 1:
            raise UsageError(f"{name}: min_accuracy is {min_accuracy:g}; it is between 0 and 1")
        found = find_shedders(writer._df)
        if not found.files and not found.properties:
            raise UsageError(
                f"{name}: min_accuracy needs rows that can be shed: read them with "
                "sheddable=True, or pass them through slackwater.spark.sheddable(df)"
            )
        others = [(each.name, each.shedders) for each in self.loop.all()]
        refuse_shared(name or "a query", found, others)
        # Of the first micro-batches nobody knows how long they take, nor what others have shed.
        found.aim(1.0, FIRST_ROWS, least=1.0)

    def add(self, record: QueryRecord, min_accuracy: float | None) -> None:
        """Look after a query that has been started."""
        assert record.writer is not None
        if min_accuracy is None:
            if not self.loop.settings.watches_all:
                return
            min_accuracy = 1.0
        self.loop.add(
            Quality(
                record.name,
                record.spec.priority,
                min_accuracy,
                find_shedders(record.writer._df),
                QualityMeter(self.loop.settings.batch_every_s),
            )
        )
        told = self._registry.update(record.name, accuracy=partial(self.of, record.name))
        if told is None or told.ended:  # before it was looked after
            self.loop.remove(record.name)

    def take(self, name: str, progress: dict[str, Any]) -> None:
        """Take in one progress event of any query."""
        self.loop.take(name, progress)

    def of(self, name: str) -> Accuracies | None:
        """Return how much of its input a query processes, for the status."""
        found = self.loop.get(name)
        if found is None:
            return None
        return Accuracies(found.min_accuracy, found.desired, found.current, found.meter.delivered)

    def _on_change(self, old: QueryRecord | None, new: QueryRecord) -> None:
        if new.ended:
            self.loop.remove(new.name)

    def _set_pace(self, name: str, pace_s: float) -> None:
        self._registry.update(name, pace_s=pace_s)

    def _pause(self, name: str) -> None:
        """Stop a query; one without a checkpoint location runs on with what it is left."""
        _later("stopped", name, partial(self._launcher.pause, name, by_hand=False))

    def _resume(self, name: str) -> None:
        _later("started again", name, partial(self._launcher.resume, name, by_hand=False))


def _later(what: str, name: str, action: Callable[[], None]) -> None:
    """Do it on a thread of its own: stopping waits for a batch, and the others must not."""

    def run() -> None:
        try:
            action()
        except Exception as error:
            log.error("%s could not be %s: %s", name, what, error)

    threading.Thread(target=run, daemon=True).start()
