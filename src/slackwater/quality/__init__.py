"""Quality of data: priorities, minimum accuracy, shedding and placement.

When input outgrows the machines, the least important work gives way first, by as little as will
do. The model and the controller are here, without an engine: :class:`QualityController` turns
what was measured (:class:`Load`) into the accuracy that each query shall have, the probabilities
with which rows are kept on their way, and, as a last resort, instances that move.
"""

from slackwater.quality.accuracies import Accuracy
from slackwater.quality.controller import NamedMove, QualityController, QualityDecision
from slackwater.quality.cost import AccuracyCost, cpu_deficit
from slackwater.quality.graph import Graph, Task
from slackwater.quality.load import Cluster, Layout, Load
from slackwater.quality.placement import place
from slackwater.quality.shedding import Keep, keep
from slackwater.quality.warmup import WarmUps

__all__ = [
    "Accuracy",
    "AccuracyCost",
    "Cluster",
    "Graph",
    "Keep",
    "Layout",
    "Load",
    "NamedMove",
    "QualityController",
    "QualityDecision",
    "Task",
    "WarmUps",
    "cpu_deficit",
    "keep",
    "place",
]
