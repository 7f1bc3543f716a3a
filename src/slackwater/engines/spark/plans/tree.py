"""Spark's query plans and expressions as plain Python trees.

``TreeNode.toJSON`` hands over a whole plan in one call, where walking it through Py4J takes
hundreds, and unlike ``treeString`` it obeys no length limit (``spark.sql.maxPlanStringLength``,
``spark.sql.debug.maxToStringFields``). It leaves out attribute metadata and intervals, so those
few are asked from the plan itself, by the path of child numbers that leads to their node.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from py4j.java_gateway import JavaClass, JavaObject
from pyspark.sql.streaming.query import StreamingQuery

_CATALYST = "org.apache.spark.sql.catalyst"


@dataclass(slots=True)
class Node:
    """One operator or expression.

    >>> leaf = {"class": "x.Literal", "num-children": 0, "value": "7"}
    >>> tree = parse([{"class": "x.Not", "num-children": 1, "child": 0}, leaf])
    >>> tree.name, tree.children[0].name, tree.children[0].path
    ('Not', 'Literal', (0,))
    """

    name: str  # simple class name
    fields: dict[str, Any]  # constructor arguments, as far as JSON can carry them
    path: tuple[int, ...] = ()  # child numbers from the root to here
    children: list["Node"] = field(default_factory=list)

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all below it, depth first, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def find(self, name: str) -> "Node | None":
        """Find the first node of that class at or below this one."""
        return next((node for node in self.walk() if node.name == name), None)

    def trees(self, key: str) -> Iterator["Node"]:
        """Yield the expression trees in a field, however deep its lists are nested."""
        yield from _trees(self.fields.get(key))


def parse(flat: list[dict[str, Any]]) -> Node:
    """Build the tree that ``toJSON`` flattened in prefix order."""
    nodes = iter(flat)
    return _build(nodes, ())


def analyzed_plan(query: StreamingQuery) -> JavaObject:
    """Return the analyzed plan, which exists from the query's start.

    ``logicalPlan`` is made lazily by the stream's own thread and must not be asked for too early.
    """
    return query._jsq.streamingQuery().analyzedPlan()


def read_plan(plan: JavaObject) -> Node:
    """Read the whole logical plan, in one call into the JVM."""
    return parse(json.loads(plan.toJSON()))


def source_options(plan: JavaObject, *names: str) -> list[dict[str, str]]:
    """Return what each source in a plan was given as these options."""
    nodes = [node for node in read_plan(plan).walk() if node.name == "StreamingRelationV2"]
    return [node_options(plan, node, *names) for node in nodes]


def source_nodes(plan: JavaObject) -> list[Node]:
    """Return the streaming sources of a plan, in its order."""
    return [node for node in read_plan(plan).walk() if is_source(node)]


def is_source(node: Node) -> bool:
    """Tell whether rows come in here."""
    return node.name.startswith("Streaming")


def relation_options(relation: JavaObject) -> dict[str, str]:
    """Return the options of a source of either kind."""
    if relation.getClass().getSimpleName() == "StreamingRelationV2":
        return dict(relation.extraOptions().asCaseSensitiveMap())
    found, options = {}, relation.dataSource().options()
    keys = options.keysIterator()
    while keys.hasNext():
        key = keys.next()
        found[str(key)] = str(options.apply(key))
    return found


def node_options(plan: JavaObject, node: Node, *names: str) -> dict[str, str]:
    """Return what one source was given as these options."""
    options = java_node(plan, node).extraOptions()
    found = {name: options.get(name) for name in names}
    return {name: str(text) for name, text in found.items() if text is not None}


def java_node(plan: JavaObject, node: Node) -> JavaObject:
    """Return the JVM's own object for a node of a plan that was read with `read_plan`."""
    current = plan
    for child in node.path:
        current = current.children().apply(child)
    return current


def interval_s(interval: JavaObject) -> float:
    """Return a ``CalendarInterval`` in seconds, counted as Spark's watermarks count it."""
    watermark = JavaClass(f"{_CATALYST}.plans.logical.EventTimeWatermark", _client(interval))
    return int(watermark.getDelayMs(interval)) / 1000.0


def text_interval_s(text: str, plan: JavaObject) -> float:
    """Read an interval as a user wrote it (``5 minutes``), in seconds."""
    utf8 = JavaClass("org.apache.spark.unsafe.types.UTF8String", _client(plan))
    intervals = JavaClass(f"{_CATALYST}.util.IntervalUtils", _client(plan))
    return interval_s(intervals.stringToInterval(utf8.fromString(text)))


def _client(anything: JavaObject) -> Any:
    return anything._gateway_client


def _build(nodes: Iterator[dict[str, Any]], path: tuple[int, ...]) -> Node:
    fields = next(nodes)
    node = Node(fields["class"].rsplit(".", 1)[-1], fields, path)
    node.children = [_build(nodes, (*path, n)) for n in range(fields["num-children"])]
    return node


def _trees(value: Any) -> Iterator[Node]:
    if not isinstance(value, list) or not value:
        return
    if isinstance(value[0], dict):
        yield parse(value)
        return
    for item in value:
        yield from _trees(item)
