"""Readings of sensors as RIoTBench has them: some missing, some out of range, some unknown.

Everything about a reading follows from its number by arithmetic on whole numbers, so that SQL of
any engine and NumPy agree on it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SENSORS = 100
MODULUS = 10_007
FACTOR = 7_919
HIGHEST = 95.0  # readings above are out of range
MISSING_EVERY = 50
UNKNOWN = 3  # last digit of (sensor × 31) of sensors that nobody has registered
NOMINAL_LOW = 20.0  # nominal value of sensor 0; each next one has a quarter more


@dataclass(frozen=True)
class Readings:
    """So many readings, as columns."""

    number: NDArray[np.int64]
    sensor: NDArray[np.int64]
    value: NDArray[np.float64]
    missing: NDArray[np.bool_]

    @classmethod
    def of(cls, number: NDArray[np.int64], seed: int) -> "Readings":
        """Return the readings with these numbers.

        >>> some = Readings.of(np.arange(100_000), seed=1)
        >>> float(some.missing.mean()), bool((some.value > HIGHEST).mean() > 0.04)
        (0.02009, True)
        """
        mixed = (number * FACTOR + seed * 101) % MODULUS
        return cls(number, number % SENSORS, mixed / 100.0, mixed % MISSING_EVERY == 0)


def registered(sensor: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell whether a sensor is known."""
    return np.asarray((sensor * 31) % 10 != UNKNOWN)


def nominal(sensor: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what stands in for a missing value."""
    return np.asarray(NOMINAL_LOW + sensor / 4.0)
