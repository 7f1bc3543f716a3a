"""The published definition: rows processed of rows that come, whatever waits."""

from typing import ClassVar

import numpy as np

from slackwater.quality.accuracies.base import Accuracy, offered, part
from slackwater.quality.graph import Floats
from slackwater.quality.load import Layout, Load


class Throughput(Accuracy):
    """Equation 4: the slowest instance's input rate by its even share of what comes."""

    name: ClassVar[str] = "throughput"

    def _local(self, layout: Layout, load: Load) -> Floats:
        shares = offered(layout, load) / np.maximum(layout.instances, 1)
        return part(load.in_rate[load.slowest(layout)], shares)
