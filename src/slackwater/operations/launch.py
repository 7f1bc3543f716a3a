"""Runs a fleet from its file: builds every query, starts it, shows what happens."""

import logging
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.console import Console
from rich.live import Live

from slackwater import policies
from slackwater.common.exceptions import first_line
from slackwater.common.places import has_scheme
from slackwater.common.plugins import load_object
from slackwater.core.clock import Deadline, RealClock
from slackwater.core.errors import UsageError
from slackwater.core.windows import Deadlines
from slackwater.engines.spark.checkpoints.files import Unreachable, open_folder
from slackwater.engines.spark.checkpoints.ownership import claim, refuse_lost_checkpoint
from slackwater.engines.spark.checkpoints.sinks import sink_of
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.gates.watermark import why_two_batches
from slackwater.engines.spark.plans.discovery import discover
from slackwater.engines.spark.session.session import session
from slackwater.engines.spark.shedding.loop import QualitySettings
from slackwater.operations.fleet_file import (
    FleetFile,
    QualitySection,
    QuerySection,
    SparkSection,
)

log = logging.getLogger("slackwater.fleet")

LINE_PERIOD_S = 10.0  # between two status lines where the output is not a terminal


@dataclass(frozen=True, slots=True)
class Outline:
    """What is known of a query without starting it."""

    deadlines: Deadlines
    own_writer: bool = False  # then trigger and output mode are the writer's, and not known
    why_two_batches: str | None = None  # a window, where one would do

    @property
    def one_batch(self) -> bool:
        """Whether the batch that reads past a window's end can emit it as well."""
        deadlines = self.deadlines
        return deadlines.marked and deadlines.output_mode == "append" and not self.why_two_batches


class Launch:
    """One run of a fleet file.

    Parameters
    ----------
    folder
        Of the file: relative paths and modules are looked up there.
    dry_run
        Decide, but hold nothing.
    quality
        Instead of what the file says.
    """

    def __init__(
        self,
        file: FleetFile,
        folder: Path,
        *,
        dry_run: bool = False,
        quality: QualitySettings | None = None,
    ) -> None:
        self._quality = quality
        self.file = file
        self.folder = folder
        self.dry_run = dry_run
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        policies.load(file.policy, **file.parameters)
        # All names are looked up before Spark is started: a typo should not cost ten seconds.
        self._functions = {name: _function(name, q) for name, q in file.queries.items()}

    def run(self, console: Console, seconds: float | None = None) -> int:
        """Run until Ctrl-C, until all queries have ended, or for ``seconds``; the exit status."""
        stop = threading.Event()
        spark = self.open_session()
        _on_signals(stop)  # after Spark has put its own handler, which would cancel all jobs
        frames = {name: self.build(spark, name) for name in self.file.queries}
        with self.open_fleet(spark) as fleet:
            for name, frame in frames.items():
                if stop.is_set():
                    break
                self.start(fleet, name, frame)
            _show(fleet, console, stop, seconds)
            failures = fleet.failures
            console.print(fleet.status().table())
            # What stopping interrupts would otherwise be reported as errors.
            spark.sparkContext.setLogLevel("OFF")
        spark.stop()
        for name, error in failures.items():
            console.print(f"[red]{name} failed:[/] {error}", highlight=False)
        return 1 if failures else 0

    def outlines(self) -> dict[str, Outline]:
        """Describe every query as its plan and its section show it; nothing is started."""
        spark = self.open_session()
        try:
            return {name: self._outline(spark, name) for name in self.file.queries}
        finally:
            spark.stop()

    def _outline(self, spark: SparkSession, name: str) -> Outline:
        section, built = self.file.queries[name], self.build(spark, name)
        if isinstance(built, Exception):
            raise UsageError(f"{name} cannot be built: {first_line(str(built))}")
        frame = built if isinstance(built, DataFrame) else built._df
        deadlines, own_writer = discover(frame), frame is not built
        if not own_writer:
            deadlines = replace(deadlines, output_mode=section.output_mode)
        return Outline(deadlines, own_writer, self._why_two_batches(section, deadlines, frame))

    def _why_two_batches(
        self, section: QuerySection, deadlines: Deadlines, frame: DataFrame
    ) -> str | None:
        if not deadlines.marked or deadlines.output_mode != "append":
            return None
        if (section.one_batch or self.file.one_batch) == "off":
            return "one_batch is off"
        if self.file.gate in ("source", "none"):
            return "its watermark can be raised only at a clock gate"
        return why_two_batches(frame)

    def open_session(self) -> SparkSession:
        """Start Spark as the file wants it."""
        return start_session(self.file.name or "slackwater", self.file.spark)

    def open_fleet(self, spark: SparkSession, name: str | None = None) -> Fleet:
        """Open an empty fleet, named as the file says or as ``name``."""
        file = self.file
        return Fleet(
            spark,
            file.policy,
            name=name or file.name,
            slots=file.slots,
            gate=file.gate,
            max_wait=file.max_wait,
            controller=file.controller,
            dry_run=self.dry_run,
            parameters=file.parameters,
            quality=self._quality or quality_settings(file.quality),
            one_batch=file.one_batch,
            runs_at_once=file.runs_at_once,
        )

    def build(self, spark: SparkSession, name: str) -> DataFrame | DataStreamWriter | Exception:
        """Call the query's function; an error of its own stops only this query."""
        section = self.file.queries[name]
        try:
            built = self._functions[name](spark, **section.arguments)
        except Exception as error:
            log.warning("%s: %s raised %s: %s", name, section.query, type(error).__name__, error)
            return error
        if isinstance(built, DataFrame) and not built.isStreaming:
            raise UsageError(
                f"{name}: {section.query} returned a batch DataFrame; read it with readStream"
            )
        if not isinstance(built, DataFrame | DataStreamWriter):
            raise UsageError(
                f"{name}: {section.query} returned {type(built).__name__}; return a streaming "
                "DataFrame or df.writeStream…"
            )
        return built

    def start(
        self, fleet: Fleet, name: str, built: DataFrame | DataStreamWriter | Exception
    ) -> None:
        """Start what the query's function returned; an error of its own stops only this query."""
        if isinstance(built, Exception):
            fleet.report_failure(name, f"{type(built).__name__}: {built}")
            return
        try:
            self._start(fleet, name, built)
        except Exception as error:
            if isinstance(error, UsageError) and not isinstance(error, Unreachable):
                raise
            fleet.report_failure(name, first_line(str(error)))
            log.error("%s could not be started, the others go on: %s", name, first_line(str(error)))

    def _start(self, fleet: Fleet, name: str, built: DataFrame | DataStreamWriter) -> None:
        section, checkpoint = self.file.queries[name], self.checkpoint(name)
        writer = self._claimed_writer(fleet, name, built)
        self._check_results(fleet.spark, name, writer)
        keys = {"priority": section.priority, "max_wait": section.max_wait}
        if section.refreshed:
            fleet.refresh(
                writer,
                name=name,
                checkpoint=checkpoint,
                every=section.every,
                trigger=section.trigger,  # type: ignore[arg-type]
                table=section.table,
                **keys,  # type: ignore[arg-type]
            )
            return
        fleet.start(
            writer.option("checkpointLocation", checkpoint),
            name=name,
            min_accuracy=section.min_accuracy,
            target=section.target,
            one_batch=section.one_batch,
            idle_after=section.idle_after,
            in_pieces=section.in_pieces,
            table=section.table,
            **keys,  # type: ignore[arg-type]
        )

    def _claimed_writer(
        self, fleet: Fleet, name: str, built: DataFrame | DataStreamWriter
    ) -> DataStreamWriter:
        """Return the query's writer, behind its gate, once its checkpoint is known to be its."""
        section = self.file.queries[name]
        folder = open_folder(self.checkpoint(name), fleet.spark)
        gated = fleet.gate_kind == "source" and not section.refreshed
        if section.approximate is not None:
            built = self._approximate(fleet, name, built)
        if isinstance(built, DataFrame):
            claim(folder, name, built, gated=gated)
            if gated:
                built = fleet.gate(
                    built, name, priority=section.priority, max_wait=section.max_wait
                )
            return self._writer(built, section)
        if gated:
            raise UsageError(
                f"{name}: the source gate needs a DataFrame; return it instead of a writer"
            )
        claim(folder, name)
        return built

    def _check_results(self, spark: SparkSession, name: str, writer: DataStreamWriter) -> None:
        """Refuse files of results that are left from before."""
        checkpoint = self.checkpoint(name)
        sink = sink_of(writer, self.file.queries[name].table, spark)
        files = None if sink is None else sink.files
        if files is not None:
            refuse_lost_checkpoint(name, open_folder(files, spark), open_folder(checkpoint, spark))

    def _approximate(
        self, fleet: Fleet, name: str, built: DataFrame | DataStreamWriter
    ) -> DataFrame:
        section = self.file.queries[name]
        assert section.approximate is not None
        if not isinstance(built, DataFrame):
            raise UsageError(f"{name}: an approximate query needs a DataFrame, not a writer")
        if section.output_mode != "append":
            raise UsageError(f"{name}: an approximate query writes in append mode")
        return fleet.approximate(built, **section.approximate.model_dump())

    def _writer(self, frame: DataFrame, section: QuerySection) -> DataStreamWriter:
        writer = frame.writeStream.outputMode(section.output_mode).options(**section.options)
        if section.format is not None or section.table is None:
            writer = writer.format(section.format or "noop")  # else its table has one
        if section.path is not None:
            writer = writer.option("path", self.results(section.path))
        if section.trigger is not None and not section.refreshed:
            writer = writer.trigger(processingTime=section.trigger)
        return writer

    def reread(self, queries: dict[str, QuerySection]) -> None:
        """Take over the file's queries, which have changed."""
        self.file = self.file.model_copy(update={"queries": queries})
        self._functions = {name: _function(name, q) for name, q in queries.items()}

    def checkpoint(self, name: str) -> str:
        """Return the checkpoint folder of a query, or its address elsewhere."""
        stated = self.file.queries[name].checkpoint
        return self.results(stated or f"{self.file.checkpoints.rstrip('/')}/{name}")

    def results(self, path: str) -> str:
        """Return where results go: a folder beside the file, or on the file system it names."""
        return path if has_scheme(path) else str((self.folder / path).resolve())


def start_session(name: str, section: SparkSection) -> SparkSession:
    """Start Spark as ``[spark]`` says."""
    texts = {key: _spark_text(value) for key, value in section.conf.items()}
    started = session(name, section.master, section.profile, texts)
    started.sparkContext.setLogLevel("ERROR")
    return started


def quality_settings(section: QualitySection) -> QualitySettings:
    """Return what ``[quality]`` says."""
    return QualitySettings(
        period_s=section.period,
        headroom=section.headroom,
        counts_others=section.counts_others,
        batch_every_s=section.batch_every,
        drain_s=section.drain,
        patience=section.patience,
        warmup_s=section.warmup,
    )


def _function(name: str, section: QuerySection) -> Callable[..., Any]:
    try:
        found = load_object(section.query)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    if not callable(found):
        raise UsageError(f"{name}: {section.query} is not a function")
    return found  # type: ignore[no-any-return]


def _spark_text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _on_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())


def _show(fleet: Fleet, console: Console, stop: threading.Event, seconds: float | None) -> None:
    """Show a live table on a terminal, a line now and then elsewhere."""
    deadline = Deadline(seconds)

    def over() -> bool:
        return stop.is_set() or deadline.passed or fleet.wait(0)

    if console.is_terminal:
        with Live(fleet.status().table(), console=console, refresh_per_second=4) as live:
            while not over():
                stop.wait(0.5)
                live.update(fleet.status().table())
        return
    next_line = Deadline(0.0)
    while not over():
        if next_line.passed:
            console.print(_line(fleet), highlight=False)
            next_line = Deadline(LINE_PERIOD_S)
        stop.wait(0.2)


def _line(fleet: Fleet) -> str:
    status = fleet.status(ask_sources=False)
    states = [query.state for query in status.queries]
    counts = ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))
    batches = sum(query.batches for query in status.queries)
    now = datetime.fromtimestamp(RealClock().now())
    return f"{now:%H:%M:%S} {counts}; {batches} batches; controller {status.controller}"
