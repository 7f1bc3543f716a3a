"""Prometheus metrics of all that is watched.

What Spark has a name for keeps that name. Labels are ``query_name`` and ``app_name``; figures of a
fleet have ``fleet_name`` in place of the first.
"""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from slackwater.operations.dashboard.status import FleetStatus, QueryStatus, SilentFleet
from slackwater.operations.dashboard.watch import Watch

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Name, field of the status, what it is.
GAUGES = (
    ("inputRowsPerSecond", "input_rows_per_second", "Rows per second that arrive."),
    (
        "processedRowsPerSecond",
        "processed_rows_per_second",
        "Rows per second while a batch runs.",
    ),
    ("batchDuration", "batch_duration_ms", "Milliseconds of the last micro-batch."),
    ("watermark_gap_seconds", "watermark_gap_s", "Start of the last batch less its watermark."),
    ("lag_rows", "lag_rows", "Rows that have arrived and were not read."),
    ("lag_seconds", "lag_s", "How far the newest event that was read is behind now."),
    ("slack_seconds", "slack_s", "How long the query can still wait without a later result."),
    ("waited_seconds", "waited_s", "How long it has been at its gate."),
    ("priority", "priority", "Larger is more important."),
    ("latency_target_seconds", "target_s", "Latency of results that its user wants."),
    ("state_rows", "state_rows", "Rows in its state stores."),
    ("state_bytes", "state_bytes", "Memory of its state stores."),
    ("table_age_seconds", "age_s", "Of a table: since its last run that succeeded began."),
    ("table_every_seconds", "every_s", "Of a table: how old it may become."),
    ("shed_ratio", "shed_rate", "Part of its input that was dropped in the last seconds."),
)
COUNTERS = (
    ("batches", "batches", "Micro-batches that ran."),
    ("rows", "rows", "Input rows of those."),
    (
        "numRowsDroppedByWatermark",
        "rows_dropped_by_watermark",
        "Rows that came behind the watermark, as its stateful operators count them.",
    ),
    ("admissions", "admissions", "Micro-batches that were admitted."),
    ("promises_kept", "kept", "Results that were as fresh as its target or trigger says."),
    ("promises_broken", "broken", "Results that were not."),
    ("restarts", "restarts", "Times that it was started again."),
)
FLEET_GAUGES = (
    ("slots", "slots", "Micro-batches that may run at once."),
    ("extra_slots", "extra_slots", "Given beside those, because cores idled while queries waited."),
    ("let_through", "let_through", "Queries that are not held for a while: they waited too long."),
)
QUERY, FLEET = ("query_name", "app_name"), ("fleet_name", "app_name")
ENDED = ("stopped", "failed")


class FleetMetrics:
    """A collector over what a watch sees."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """Return it as Prometheus scrapes it."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        return []  # so that registering looks at nothing

    def collect(self) -> Iterator[Metric]:
        status = self._watch.now().status
        yield from self._of_queries(_distinct(status.queries))
        yield from _of_fleets(status.fleets)
        yield self._latencies()

    def _of_queries(self, queries: list[QueryStatus]) -> Iterator[Metric]:
        for name, key, text in GAUGES:
            yield _gauge(name, text, [(_labels(q), getattr(q, key)) for q in queries])
        for name, key, text in COUNTERS:
            yield _counter(name, text, [(_labels(q), getattr(q, key)) for q in queries])
        for name in ("minimum", "desired", "current", "delivered"):
            found = [(_labels(q), getattr(q.accuracy, name)) for q in queries if q.accuracy]
            yield _gauge(f"accuracy_{name}", f"Part of its input, {name}.", found)
        states = GaugeMetricFamily(
            "slackwater_query_state", "1 for the state that it is in.", labels=(*QUERY, "state")
        )
        for query in queries:
            states.add_metric([*_labels(query), query.state], 1.0)
        yield states

    def _latencies(self) -> Metric:
        found = HistogramMetricFamily(
            "slackwater_latency_seconds",
            "From a window's end to its result complete at the sink, since this page was started.",
            labels=QUERY,
        )
        for (app, query), seen in list(self._watch.latencies.items()):
            found.add_metric([query, app], seen.cumulative(), seen.sum_s)
        return found


def _of_fleets(fleets: Sequence[FleetStatus | SilentFleet]) -> Iterator[Metric]:
    up = [(_fleet_labels(fleet), float(fleet.state != "silent")) for fleet in fleets]
    yield _gauge("controller_up", "Whether the controller answers.", up, FLEET)
    known = [fleet for fleet in fleets if isinstance(fleet, FleetStatus)]
    held = [(_fleet_labels(fleet), float(fleet.state == "holding")) for fleet in known]
    yield _gauge("holding", "Whether queries are held; else all gates are open.", held, FLEET)
    for name, key, text in FLEET_GAUGES:
        yield _gauge(
            name, text, [(_fleet_labels(fleet), getattr(fleet, key)) for fleet in known], FLEET
        )
    for name, key, text in (
        ("gates_opened", "opened", "Gates that opened by themselves."),
        ("source_questions", "asked", "Questions to sources whether something has come."),
        ("source_questions_cpu_seconds", "asking_s", "CPU time that those took, about."),
    ):
        values = [(_fleet_labels(fleet), float(getattr(fleet, key))) for fleet in known]
        yield _counter(name, text, values, FLEET)
    for kind in ("used", "limit"):
        found = [
            (_fleet_labels(fleet), getattr(fleet.memory, f"{kind}_bytes"))
            for fleet in known
            if fleet.memory
        ]
        yield _gauge(f"memory_{kind}_bytes", f"Memory of the engine: {kind}.", found, FLEET)
    for name, key, text in (
        ("controller_cpu_seconds", "cpu_s", "CPU time of the controller."),
        ("controller_cycles", "cycles", "Turns of its loop."),
    ):
        values = [(_fleet_labels(fleet), getattr(fleet.controller, key)) for fleet in known]
        yield _counter(name, text, values, FLEET)
    info = GaugeMetricFamily(
        "slackwater_info", "What runs; always 1.", labels=(*FLEET, "policy", "version")
    )
    for fleet in known:
        info.add_metric([*_fleet_labels(fleet), fleet.policy, version("slackwater")], 1.0)
    yield info


Values = Sequence[tuple[tuple[str, str], float | None]]


def _gauge(name: str, text: str, values: Values, labels: tuple[str, ...] = QUERY) -> Metric:
    return _filled(GaugeMetricFamily(f"slackwater_{name}", text, labels=labels), values)


def _counter(name: str, text: str, values: Values, labels: tuple[str, ...] = QUERY) -> Metric:
    return _filled(CounterMetricFamily(f"slackwater_{name}", text, labels=labels), values)


def _filled(family: Any, values: Values) -> Metric:
    for labels, value in values:
        if value is not None:  # not known is no sample
            family.add_metric(labels, value)
    return family  # type: ignore[no-any-return]


def _distinct(queries: Sequence[QueryStatus]) -> list[QueryStatus]:
    """Leave one of each: of a query that two workers know, that of the one that runs it."""
    found: dict[tuple[str, str], QueryStatus] = {}
    for query in queries:
        other = found.get(_labels(query))
        if other is None or other.state in ENDED:
            found[_labels(query)] = query
    return list(found.values())


def _labels(query: QueryStatus) -> tuple[str, str]:
    return query.name, query.app_name


def _fleet_labels(fleet: FleetStatus | SilentFleet) -> tuple[str, str]:
    return fleet.name, fleet.app_name
