"""What accuracy costs: CPU by accuracy and back (equations 6 to 13).

CPU is affine in accuracy: a part that is there however few rows come, and one in proportion. The
published model is the case without the fixed part.
"""

from dataclasses import dataclass

import numpy as np

from slackwater.quality.graph import Bools, Floats
from slackwater.quality.load import Layout, Load

UNKNOWN_CPU = 1.0  # cores that a task is taken to need while nothing is known of it
TELLING = 1e-6  # an accuracy below this is rounding, and what it cost says nothing


@dataclass(frozen=True)
class AccuracyCost:
    """The cost of one instance of each task (its instances are alike)."""

    fixed: Floats  # cores at accuracy 0
    slope: Floats  # further cores at accuracy 1
    most: Floats  # cores that an instance can use

    @classmethod
    def of(cls, layout: Layout, load: Load, current: Floats) -> "AccuracyCost":
        """Derive it from the CPU that was measured at the current accuracy."""
        cpu = load.cpu[load.slowest(layout)] if len(layout.task) else np.zeros(len(current))
        fixed = np.minimum(load.fixed, cpu)
        slope = np.divide(
            cpu - fixed, current, out=np.full(len(current), UNKNOWN_CPU), where=current > TELLING
        )
        return cls(fixed, slope, load.most)

    def without(self, stopped: Bools) -> "AccuracyCost":
        """Return the cost where some tasks do not run and cost nothing."""
        runs = ~stopped
        return AccuracyCost(self.fixed * runs, self.slope * runs, self.most)

    def required(self, accuracy: Floats) -> Floats:
        """Return the cores for an accuracy, as far as an instance can use them.

        rCpu(t, ac), equation 8.
        """
        return np.minimum(self.fixed + self.slope * accuracy, self.most)

    def obtained(self, cpu: Floats) -> Floats:
        """Return the accuracy that so many cores allow.

        obtAc(t, cpu), equation 11.
        """
        rows = np.maximum(cpu - self.fixed, 0.0)
        nothing_needed = self.slope <= 0
        found = np.divide(rows, self.slope, out=np.ones_like(rows), where=~nothing_needed)
        return np.minimum(found, 1.0)


def cpu_deficit(
    layout: Layout, cost: AccuracyCost, least: Floats, most: Floats, available: Floats, at: Bools
) -> Floats:
    """Return by worker the cores that instances ``at`` lack above their minimum (equation 13).

    The paper calls it slack; here that word is Klink's.

    Parameters
    ----------
    least, most
        By task, minAc(t) and maxAc(t).
    available
        By worker, cores that are left after all minimums.
    at
        By instance, those with the priority in question.
    """
    workers = len(available)
    wanted = (cost.required(most) - cost.required(least))[layout.task]
    there = np.bincount(layout.worker[at], minlength=workers)
    lacking = np.bincount(layout.worker[at], weights=wanted[at], minlength=workers)
    # mObtCpu, equation 7: what is available, evenly; so its sum is what is available.
    return np.where(there > 0, lacking - available, 0.0)
