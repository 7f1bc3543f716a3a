"""Finds a streaming query's deadlines in its analyzed plan: windows, watermarks, inputs.

The analyzed plan is the only one that always holds everything: the parsed plan of a query over a
view or a CTE does not contain what lies below it. There, Spark has already replaced a time window
by arithmetic on its time column; `_time_window` and `_session_window` read that arithmetic back.
Its mark is ``PreciseTimestampConversion``, an expression that only the window rules create.
"""

import logging
import math
from dataclasses import replace
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.core.windows import Deadlines, InputStream, Window, WindowKind
from slackwater.engines.spark.plans.tree import (
    Node,
    analyzed_plan,
    interval_s,
    java_node,
    read_plan,
    text_interval_s,
)

_log = logging.getLogger(__name__)

GATE_FORMAT = "slackwater-gate"  # of the source gate, which is no input of the user's query
_MICROSECONDS = 1_000_000
# What turns a window column into something with a deadline; a mere projection has none.
_STATEFUL = {
    "Aggregate",
    "Deduplicate",
    "DeduplicateWithinWatermark",
    "Distinct",
    "FlatMapGroupsInPandasWithState",
    "FlatMapGroupsWithState",
    "Join",
    "TransformWithState",
    "TransformWithStateInPySpark",
}


def discover(df: DataFrame, override: Deadlines | None = None) -> Deadlines:
    """Return windows and inputs of a streaming DataFrame; what ``override`` states goes first.

    Nothing found, or a plan that cannot be read, means no deadline and is never an error.
    """
    stated = override or Deadlines()
    if stated.windows and stated.inputs:
        return stated
    found = _discover_plan(df._jdf.queryExecution().analyzed())
    return replace(
        found, windows=stated.windows or found.windows, inputs=stated.inputs or found.inputs
    )


def discover_query(query: StreamingQuery) -> Deadlines:
    """Return windows and inputs of a query that already runs."""
    try:
        plan = analyzed_plan(query)
    except (Py4JError, AttributeError) as problem:
        _log.warning("cannot read the plan of query %s, so no deadline: %s", query.name, problem)
        return Deadlines()
    return replace(_discover_plan(plan), output_mode=output_mode(query))


def output_mode(query: StreamingQuery) -> str:
    """Return ``append``, ``update`` or ``complete``."""
    try:
        return str(query._jsq.streamingQuery().outputMode().toString()).lower()
    except (Py4JError, AttributeError):
        return "append"


def _discover_plan(plan: JavaObject) -> Deadlines:
    try:
        return _PlanReader(plan).read()
    except (Py4JError, KeyError, TypeError, ValueError) as problem:
        _log.warning("cannot read a query's plan, so no deadline: %s", problem)
        return Deadlines()


class _PlanReader:
    """Collects windows, upstream first, and streaming inputs, left to right."""

    def __init__(self, plan: JavaObject) -> None:
        self.plan = plan
        self.root = read_plan(plan)
        self.common_tables: dict[Any, Node] = {
            node.fields["id"]: node for node in self.root.walk() if node.name == "CTERelationDef"
        }
        self.windows: dict[tuple[int, ...], list[Window]] = {}  # by the operator's path
        self.inputs: dict[tuple[int, ...], InputStream] = {}  # by the leaf's path
        self.delays: dict[tuple[int, ...], float] = {}  # by the watermark operator's path

    def read(self) -> Deadlines:
        self._visit(self.root, stateful=False, watermarks=())
        windows = tuple(window for found in self.windows.values() for window in found)
        return Deadlines(windows, tuple(self.inputs.values()))

    def _visit(self, node: Node, stateful: bool, watermarks: tuple[Node, ...]) -> tuple[int, ...]:
        """Read everything below ``node``; return the numbers of the inputs that feed it."""
        if node.name.startswith("Streaming"):
            return self._input(node, watermarks)
        stateful = stateful or node.name in _STATEFUL
        if node.name == "EventTimeWatermark":
            watermarks = (*watermarks, node)
        feeding = {
            number
            for child in self._below(node)
            for number in self._visit(child, stateful, watermarks)
        }
        numbers = tuple(sorted(feeding))
        if stateful and numbers and node.path not in self.windows:
            self.windows[node.path] = self._windows_of(node, numbers)
        return numbers

    def _below(self, node: Node) -> list[Node]:
        """Return the operators below; a common table is read where it is used, not defined."""
        if node.name == "WithCTE":
            return node.children[-1:]
        if node.name == "CTERelationRef" and not node.fields.get("recursive"):
            return [self.common_tables[node.fields["cteId"]]]
        return node.children

    def _input(self, leaf: Node, watermarks: tuple[Node, ...]) -> tuple[int, ...]:
        if leaf.fields.get("sourceName") == GATE_FORMAT:
            return ()
        if leaf.path not in self.inputs:
            self.inputs[leaf.path] = self._input_stream(leaf, watermarks)
        return (list(self.inputs).index(leaf.path),)

    def _input_stream(self, leaf: Node, watermarks: tuple[Node, ...]) -> InputStream:
        """Return an input with its largest delay: of several watermarks Spark takes the minimum."""
        name = str(leaf.fields.get("sourceName") or leaf.name)
        if not watermarks:
            return InputStream(name)
        slowest = max(reversed(watermarks), key=self._delay)
        column = next(slowest.trees("eventTime")).fields["name"]
        return InputStream(name, column, self._delay(slowest))

    def _delay(self, watermark: Node) -> float:
        if watermark.path not in self.delays:
            self.delays[watermark.path] = interval_s(java_node(self.plan, watermark).delay())
        return self.delays[watermark.path]

    def _windows_of(self, node: Node, inputs: tuple[int, ...]) -> list[Window]:
        """Return the windows of an operator; a sliding one is expanded there, each copy alike."""
        found: dict[Window, None] = {}  # an ordered set
        for key in ("projectList", "projections"):
            for tree in node.trees(key):
                window = self._window(tree, inputs)
                if window is not None:
                    found[window] = None
        return list(found)

    def _window(self, tree: Node, inputs: tuple[int, ...]) -> Window | None:
        struct = tree.children[0] if tree.name == "Alias" else tree
        if struct.name != "CreateNamedStruct" or not struct.find("PreciseTimestampConversion"):
            return None
        names = [label.fields.get("value") for label in struct.children[::2]]
        if names != ["start", "end"]:
            return None
        start, end = struct.children[1::2]
        return _time_window(start, end, inputs) or self._session_window(start, end, inputs)

    def _session_window(self, start: Node, end: Node, inputs: tuple[int, ...]) -> Window | None:
        """Read ``end``, ``time + gap``; a gap that is computed for each row is told as infinite."""
        addition = end.find("TimestampAddInterval") or end.find("TimeAdd")
        if addition is None or len(addition.children) != 2:
            return None
        gap = addition.children[1]
        literal = gap.children[0] if gap.name == "Cast" else gap
        size = math.inf
        if literal.name == "Literal" and literal.fields.get("value") is not None:
            size = text_interval_s(str(literal.fields["value"]), self.plan)
        return Window("session", size, size, 0.0, _column(start), inputs)


def _time_window(start: Node, end: Node, inputs: tuple[int, ...]) -> Window | None:
    """Read ``start``, with ``(time - offset) % slide`` in it, and ``end``, ``start + size``."""
    remainder, addition = start.find("Remainder"), end.find("Add")
    if remainder is None or addition is None:
        return None
    slide = _seconds(remainder.children[1])
    offset = _seconds(remainder.children[0].children[1])
    size = _seconds(addition.children[1])
    kind: WindowKind = "tumbling" if size == slide else "sliding"
    return Window(kind, size, slide, offset, _column(start), inputs)


def _seconds(literal: Node) -> float:
    return int(literal.fields["value"]) / _MICROSECONDS


def _column(expression: Node) -> str:
    attribute = expression.find("AttributeReference")
    return str(attribute.fields["name"]) if attribute else ""
