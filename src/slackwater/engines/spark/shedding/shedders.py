"""The shedders of a query, wherever they are: set together, and seen by what they let through."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from slackwater.core.errors import UsageError
from slackwater.engines.spark.plans.discovery import GATE_FORMAT
from slackwater.engines.spark.plans.live_value import LiveValue
from slackwater.engines.spark.plans.tree import node_options, read_plan
from slackwater.engines.spark.progress import Arrived, parsed_offset
from slackwater.engines.spark.shedding.filter import PREFIX, SPARING
from slackwater.engines.spark.sources.directives import DirectivesFile, arrived_at
from slackwater.quality.rates import EVERYTHING, NO_SHEDDING, KeepRates, ShedPlan, spared_share


class Counted(NamedTuple):
    """Rows of a micro-batch: those there were, and those that were kept."""

    seen: int
    kept: int


@dataclass
class Shedders:
    """All shedders of one query; they have the same rates, so that joined inputs match.

    Parameters
    ----------
    files
        Directives of sources of ours.
    properties
        Names of filters inside Spark.
    """

    spark: SparkSession
    files: tuple[DirectivesFile, ...] = ()
    properties: tuple[str, ...] = ()
    spares: bool = False  # whether some rows are dropped last
    others: bool = False  # whether it has sources besides that may count their rows
    plan: ShedPlan = NO_SHEDDING
    share: float = 0.0  # of rows that are spared, as far as is known

    def aim(self, accuracy: float, rows: int | None = None, least: float = 0.0) -> None:
        """Keep so much on the whole, from the next micro-batch on; see :class:`ShedPlan`."""
        self.put(ShedPlan(accuracy, self.share, rows, least))

    def put(self, plan: ShedPlan) -> None:
        """Set a plan, also when nothing has changed: a source forgets one that is not renewed."""
        if plan.rows is not None and len(self.files) > 1:
            plan = replace(plan, rows=max(1, plan.rows // len(self.files)))
        for file in self.files:
            file.shed(plan)
        if plan.rates(1) != self.plan.rates(1):
            for name in self.properties:
                LiveValue(self.spark, name).set(plan.rates(1).numbers)
        self.plan = plan

    def count(self, progress: dict[str, Any]) -> Counted | None:
        """Count what a micro-batch let through; None where it had no rows to shed."""
        found = [*self._at_sources(progress), *self._in_filters(progress)]
        seen, kept = sum(each.seen for each in found), sum(each.kept for each in found)
        if not seen:
            return None
        if not self.spares:
            return Counted(seen, kept)
        told = rates_of(progress) if self.files else self.plan.rates(1)
        share = spared_share(told or EVERYTHING, kept / seen)
        if share is not None and seen >= 100:
            self.share += 0.2 * (share - self.share)
        return Counted(seen, kept)

    def arrivals(self) -> list[Arrived]:
        """Return what sources of ours have told lately; nothing where they are not all such."""
        return [] if self.others else arrived_at(self.files)

    def close(self) -> None:
        """Shed nothing any more, and leave nothing behind."""
        self.put(NO_SHEDDING)
        for file in self.files:
            file.end_shedding()

    def _at_sources(self, progress: dict[str, Any]) -> Iterable[Counted]:
        if not self.files:
            return
        for source in progress.get("sources", []):
            start, end = _rows_before(source.get("startOffset")), _rows_before(source["endOffset"])
            if end is not None:
                yield Counted(int(end - (start or 0)), int(source["numInputRows"]))

    def _in_filters(self, progress: dict[str, Any]) -> Iterable[Counted]:
        observed = progress.get("observedMetrics") or {}
        for name in self.properties:
            if name in observed and f"{name}.seen" in observed:
                yield Counted(int(observed[f"{name}.seen"]["rows"]), int(observed[name]["rows"]))


def find_shedders(df: DataFrame) -> Shedders:
    """Find those in the plan of a query; empty where it has none."""
    plan = df._jdf.queryExecution().analyzed()
    files, properties, spares, others = set(), set(), False, False
    for node in read_plan(plan).walk():
        if node.name == "StreamingRelationV2":
            options = node_options(plan, node, "directives", "sheddable", "spare")
            if "directives" in options and options.get("sheddable") == "true":
                files.add(DirectivesFile(Path(options["directives"])))
                spares |= "spare" in options
            else:
                others |= node.fields.get("sourceName") != GATE_FORMAT
        elif node.name.startswith("Streaming"):  # files, say: of Spark's first interface
            others = True
        elif node.name == "CollectMetrics":
            name = str(node.fields.get("name"))
            if name.startswith(PREFIX) and not name.endswith(".seen"):
                properties.add(name)
                spares |= name.startswith(SPARING)
    names = tuple(sorted(files)), tuple(sorted(properties))
    return Shedders(df.sparkSession, *names, spares, others)


def refuse_shared(name: str, found: Shedders, others: Iterable[tuple[str, Shedders]]) -> None:
    """Refuse two queries that read one DataFrame: they would be shed alike."""
    for other, theirs in others:
        if set(found.files) & set(theirs.files) or set(found.properties) & set(theirs.properties):
            raise UsageError(
                f"{name} and {other} read the same sheddable DataFrame: make one for each query"
            )


def rates_of(progress: dict[str, Any]) -> KeepRates | None:
    """Return the rates that a micro-batch was read with, where a source of ours tells."""
    for source in progress.get("sources", []):
        offset = parsed_offset(source.get("endOffset"))
        if isinstance(offset, dict) and "k" in offset:
            return KeepRates.of_numbers(offset["k"])
    return None


def _rows_before(offset: Any) -> float | None:
    offset = parsed_offset(offset)
    return float(offset["n"]) if isinstance(offset, dict) and "n" in offset else None
