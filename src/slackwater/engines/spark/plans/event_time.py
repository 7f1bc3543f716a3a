"""Traces each watermark of a query's plan down to the source column that it is defined on.

A watermark can be raised ahead of Spark only if the newest event time at the source is the newest
that the watermark will see: nothing between the two may drop rows or compute the time anew. That is
judged on the analysed plan, as the user wrote it; the optimizer may move filters later. A time that
is computed (out of a payload, say) has no column at the source: how far it is only the user knows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from py4j.java_gateway import JavaObject

from slackwater.engines.spark.plans.tree import (
    Node,
    interval_s,
    is_source,
    java_node,
    read_plan,
)
from slackwater.engines.spark.session.versions import watermark_key

_WATERMARK = "EventTimeWatermark"
_PASS_ROWS = {
    "CollectMetrics",
    "Project",
    "RebalancePartitions",
    "Repartition",
    "RepartitionByExpression",
    "ResolvedHint",
    "SubqueryAlias",
    "View",
}
_WHY_NOT = {
    "Filter": "rows are filtered before the watermark",
    "Join": "inputs are joined before the watermark",
    "Aggregate": "rows are aggregated before the watermark",
    "Union": "several inputs share a watermark",
    "Generate": "rows are made before the watermark",
    _WATERMARK: "the input has two watermarks",
    "CTERelationRef": "the input is a common table",
}


@dataclass(frozen=True, slots=True)
class TracedWatermark:
    """One watermark, and the source that its event time comes from."""

    operator: str  # by which Spark tells the watermarks of a query apart
    delay_ms: int
    source: JavaObject = None  # the relation in the plan; None: it cannot be traced
    source_name: str = ""  # as ``format`` named it
    place: int = 0  # of the source among all of the plan
    places: int = 1  # how many the plan has
    column: str | None = None  # the source's own name of the event time; None: it is computed
    why_not: str | None = None  # why it cannot be traced


def has_watermark(plan: JavaObject) -> bool:
    """Tell whether rows of an analysed plan can be too late."""
    return any(node.name == _WATERMARK for node in read_plan(plan).walk())


def trace_watermarks(plan: JavaObject) -> list[TracedWatermark]:
    """Return every watermark of an analysed plan, in the order of the plan."""
    nodes = list(read_plan(plan).walk())
    sources = [node.path for node in nodes if is_source(node)]
    marked = [node for node in nodes if node.name == _WATERMARK]
    return [_trace(plan, node, number, sources) for number, node in enumerate(marked)]


def _trace(
    plan: JavaObject, watermark: Node, number: int, sources: Sequence[tuple[int, ...]]
) -> TracedWatermark:
    operator = watermark_key(watermark.fields, number)
    delay_ms = round(1000 * interval_s(java_node(plan, watermark).delay()))
    wanted = _id(next(watermark.trees("eventTime")))
    node = watermark.children[0]
    while not is_source(node):
        if node.name not in _PASS_ROWS or not node.children:
            between = f"{node.name} stands between the source and the watermark"
            why_not = _WHY_NOT.get(node.name, between)
            return TracedWatermark(operator, delay_ms, why_not=why_not)
        if node.name == "Project":
            wanted = _below_project(node, wanted)
        node = node.children[0]
    columns = {_id(tree): str(tree.fields["name"]) for tree in node.trees("output")}
    return TracedWatermark(
        operator,
        delay_ms,
        source=java_node(plan, node),
        source_name=str(node.fields.get("sourceName") or ""),
        place=sources.index(node.path),
        places=len(sources),
        column=columns.get(wanted),
    )


def _below_project(project: Node, wanted: object) -> object | None:
    """Return the number of the column below that a projection passes on under ``wanted``."""
    for tree in project.trees("projectList"):
        if _id(tree) != wanted:
            continue
        if tree.name == "Alias":
            tree = tree.children[0]
        return _id(tree) if tree.name == "AttributeReference" else None
    return None


def _id(tree: Node) -> object:
    """Return the number by which expressions refer to a column."""
    number = tree.fields.get("exprId")
    return (number["id"], number["jvmId"]) if isinstance(number, dict) else None
