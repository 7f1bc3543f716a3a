"""The queries of a fleet that may be shed."""

import logging
import threading
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core.errors import UsageError
from slackwater.engines.spark.queries.launcher import Launcher
from slackwater.engines.spark.queries.registry import Member
from slackwater.engines.spark.queries.status import Accuracies
from slackwater.engines.spark.session.master import is_local
from slackwater.engines.spark.shedding.loop import (
    FIRST_ROWS,
    Quality,
    QualityLoop,
    QualitySettings,
)
from slackwater.engines.spark.shedding.meter import QualityMeter
from slackwater.engines.spark.shedding.shedders import Shedders, find_shedders, refuse_shared

log = logging.getLogger("slackwater.quality")


class FleetQuality:
    """Finds the shedders of queries as they are started, and pauses those that must stop."""

    def __init__(self, spark: SparkSession, settings: QualitySettings, launcher: Launcher) -> None:
        local = is_local(spark.conf.get("spark.master"))
        cores = float(spark.sparkContext.defaultParallelism) if local else None
        if cores is not None and settings.cpus:
            cores = float(len(settings.cpus))
        cores = cores if settings.cores is None else settings.cores
        self._launcher = launcher
        self._members: dict[str, Member] = {}
        self.loop = QualityLoop(settings, cores, self._pause, self._resume, self._set_pace)

    def prepare(self, name: str | None, writer: DataStreamWriter, min_accuracy: float) -> None:
        """Refuse a query that cannot be shed, before it is started."""
        if not 0 <= min_accuracy <= 1:
            raise UsageError(f"{name}: min_accuracy is {min_accuracy:g}; it is between 0 and 1")
        found = self._shedders(writer)
        if not found.files and not found.properties:
            raise UsageError(
                f"{name}: min_accuracy needs rows that can be shed: read them with "
                "sheddable=True, or pass them through slackwater.spark.sheddable(df)"
            )
        others = [(each.name, each.shedders) for each in self.loop.all()]
        refuse_shared(name or "a query", found, others)
        # Of the first micro-batches nobody knows how long they take, nor what others have shed.
        found.aim(1.0, FIRST_ROWS, least=1.0)

    def add(self, member: Member, min_accuracy: float | None) -> None:
        """A query that has been started."""
        assert member.writer is not None
        if min_accuracy is None:
            if not self.loop.settings.watches_all:
                return
            min_accuracy = 1.0
        name = member.spec.name
        self._members[name] = member
        self.loop.add(
            Quality(
                name,
                member.spec.priority,
                min_accuracy,
                self._shedders(member.writer),
                QualityMeter(self.loop.settings.batch_every_s),
            )
        )

    def take(self, name: str, progress: dict[str, Any]) -> None:
        """One progress event of any query."""
        self.loop.take(name, progress)

    def of(self, name: str) -> Accuracies | None:
        """For the status."""
        found = self.loop.get(name)
        if found is None:
            return None
        return Accuracies(found.min_accuracy, found.desired, found.current, found.meter.delivered)

    def _shedders(self, writer: DataStreamWriter) -> Shedders:
        return find_shedders(writer._df)

    def _pause(self, name: str) -> None:
        member = self._members[name]
        member.paused = True
        if member.query is not None:
            # Stopping waits for the batch that runs; the others must not wait with it.
            threading.Thread(target=member.query.stop, daemon=True).start()

    def _resume(self, name: str) -> None:
        member = self._members[name]
        if member.stopped or member.by_hand:
            return
        member.paused = False
        threading.Thread(target=self._relaunch, args=(member,), daemon=True).start()

    def _set_pace(self, name: str, pace_s: float) -> None:
        member = self._members[name]
        member.spec = replace(member.spec, pace_s=pace_s)
        self._launcher.agent.add(member.spec)

    def _relaunch(self, member: Member) -> None:
        try:
            self._launcher.relaunch(member)
        except Exception as error:
            log.error("%s could not be started again: %s", member.spec.name, error)
