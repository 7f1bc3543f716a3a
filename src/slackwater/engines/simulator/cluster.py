"""Several nodes: queries whose operators are spread over two of them, a controller on each."""

from collections.abc import Sequence
from typing import Any

from slackwater.core.clock import VirtualClock
from slackwater.core.controller import Controller
from slackwater.core.errors import UsageError
from slackwater.core.protocols import Policy
from slackwater.engines.simulator.operators import OperatorEngine
from slackwater.engines.simulator.pipeline import PipelineQuery, PipelineSegment
from slackwater.engines.simulator.query import Result
from slackwater.engines.simulator.sources import Mark


class SimulatedCluster:
    """Nodes in step with each other.

    The first half of a query's operators runs on one node, the second half on the next one; what
    passes between them is a cycle on its way. If one node's memory is full, all sources wait. Each
    node decides by itself, from what it sees and from what its neighbours forward: watermarks
    that have come to a source go downstream, costs of an event go upstream.

    Parameters
    ----------
    policies
        One a node.
    forwarding
        False: each node knows its own part alone.
    options
        Of each node's :class:`OperatorEngine`.
    """

    def __init__(
        self,
        clock: VirtualClock,
        queries: Sequence[PipelineQuery],
        policies: Sequence[Policy],
        *,
        forwarding: bool = True,
        seed: int = 1,
        **options: Any,
    ) -> None:
        count = len(policies)
        if count < 2:
            raise UsageError("a cluster has at least two nodes")
        if len(queries) < count:
            raise UsageError(f"{count} nodes need at least as many queries, not {len(queries)}")
        self.clock = clock
        parts: list[list[PipelineSegment]] = [[] for _ in range(count)]
        for number, query in enumerate(queries):
            half = len(query.operators) // 2
            parts[number % count].append(PipelineSegment(query, 0, half))
            parts[(number + 1) % count].append(PipelineSegment(query, half))
        first_seed = seed * count  # so that no two runs share one
        self.nodes = [
            OperatorEngine(clock, part, forwarding=forwarding, seed=first_seed + number, **options)
            for number, part in enumerate(parts)
        ]
        self._controllers = [
            Controller(node, policy, node, clock, remember=1)
            for node, policy in zip(self.nodes, policies, strict=True)
        ]
        self._gone: list[list[float]] = [[0.0] * len(part) for part in parts]
        self._forwarding = forwarding
        for number, query in enumerate(queries):
            here, there = self.nodes[number % count], self.nodes[(number + 1) % count]
            here.downstream[here.places[query.name]] = there, there.places[query.name]

    @property
    def results(self) -> list[Result]:
        return [result for node in self.nodes for result in node.results]

    def run(self, until_s: float) -> None:
        while self.clock.now() < until_s:
            for controller in self._controllers:
                controller.cycle()
            self._cycle()

    def _cycle(self) -> None:
        first = self.nodes[0]
        for _ in range(first.steps):
            held, now_s = any(node.full for node in self.nodes), self.clock.now()
            self.clock.advance_to(now_s + first.cycle_s / first.steps)
            for node in self.nodes:
                node.hold_up()
            for node in self.nodes:
                node.step(now_s, held)
            for node, gone in zip(self.nodes, self._gone, strict=True):
                self._forward(node, gone)
        for node in self.nodes:
            node.end_cycle()

    def _forward(self, node: OperatorEngine, gone: list[float]) -> None:
        marks: dict[int, list[Mark]] = {}
        for place, mark in node.passed:
            marks.setdefault(place, []).append(mark)
        for place, (other, there) in node.downstream.items():
            passed = node.moved_on(place)
            if passed > gone[place] or place in marks:
                other.deliver(there, passed - gone[place], marks.get(place, []))
                gone[place] = passed
        if self._forwarding:
            for place, mark in node.arrived:
                other, there = node.downstream[place]
                other.learn(there, mark)
