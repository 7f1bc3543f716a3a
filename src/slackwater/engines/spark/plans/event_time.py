"""Traces each watermark of a query's plan down to the source column that it is defined on.

A watermark can be raised ahead of Spark only if the newest event time at the source is the newest
that the watermark will see: nothing between the two may drop rows or compute the time anew. That is
judged on the analysed plan, as the user wrote it; the optimizer may move filters later.
"""

from dataclasses import dataclass

from py4j.java_gateway import JavaObject

from slackwater.engines.spark.plans.tree import Node, interval_s, java_node, read_plan

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
    "EventTimeWatermark": "the input has two watermarks",
    "CTERelationRef": "the input is a common table",
}


@dataclass(frozen=True, slots=True)
class TracedWatermark:
    """One watermark, and the source that its event time comes from."""

    operator: str  # by which Spark tells the watermarks of a query apart
    delay_ms: int
    source: JavaObject = None  # the relation in the plan; None: it cannot be traced
    source_name: str = ""  # as ``format`` named it
    column: str = ""  # the source's own name of the event time
    why_not: str | None = None  # why it cannot be traced


def trace_watermarks(plan: JavaObject) -> list[TracedWatermark]:
    """Return every watermark of an analysed plan, in the order of the plan."""
    root = read_plan(plan)
    found = [node for node in root.walk() if node.name == "EventTimeWatermark"]
    return [_trace(plan, node) for node in found]


def _trace(plan: JavaObject, watermark: Node) -> TracedWatermark:
    operator = str(watermark.fields["nodeId"])
    delay_ms = round(1000 * interval_s(java_node(plan, watermark).delay()))
    wanted = _id(next(watermark.trees("eventTime")))
    node = watermark.children[0]
    while not node.name.startswith("Streaming"):
        why_not = None if node.name in _PASS_ROWS else _WHY_NOT.get(node.name, _other(node))
        if why_not is None and node.name == "Project":
            wanted = _below_project(node, wanted)
            why_not = None if wanted is not None else "the event time is computed"
        if why_not is not None or not node.children:
            return TracedWatermark(operator, delay_ms, why_not=why_not or _other(node))
        node = node.children[0]
    columns = {_id(tree): str(tree.fields["name"]) for tree in node.trees("output")}
    if wanted not in columns:
        return TracedWatermark(operator, delay_ms, why_not="the event time is computed")
    name = str(node.fields.get("sourceName") or "")
    return TracedWatermark(operator, delay_ms, java_node(plan, node), name, columns[wanted])


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


def _other(node: Node) -> str:
    return f"{node.name} stands between the source and the watermark"
