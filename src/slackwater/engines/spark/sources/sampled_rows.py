"""Rows of our sources as they are sampled: which are handed on, and their column ``sample``."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.core.errors import UsageError
from slackwater.sampling.grid import Ints
from slackwater.sampling.ledger import Floats, Ledger, Weighed
from slackwater.sampling.plan import NO_NUMBER, Plan

SAMPLE = "sample"
# Of a row: the probability that it was kept, its network delay in seconds, for each window that it
# can be in how many rows it stands for there (0: it came too late) and how doubtful that is, and
# the least and the most rows of a window that are usual. Pulses stand for nothing: no delay.
SAMPLE_TYPE = (
    "struct<rate: double, delay: double, weights: array<double>, doubts: array<double>, "
    "usual: array<double>>"
)
# A small sample would let the watermark lag behind: it follows the newest row that Spark sees. So
# the newest rows of a batch are handed on even if they are not in the sample, as pulses; several,
# because a query may filter rows before it looks at their time.
PULSES = 32


def next_ledger(plan: Plan | None, ledger: Ledger | None, until_us: int) -> Ledger | None:
    """Return the ledger of the next offset, if there is a plan or was one.

    Parameters
    ----------
    until_us
        All rows that have arrived by then are in the micro-batch or in an earlier one.
    """
    if ledger is not None:
        if plan is not None and plan.grid != ledger.grid:
            raise UsageError(
                "the checkpoint was written with other windows: use a new checkpoint folder, or "
                "the window, slide and offset that it began with"
            )
        return ledger.advance(plan, until_us)
    return None if plan is None else Ledger.begin(plan, until_us)


def weigh(
    ledger: Ledger | None, event_us: Ints, arrival_us: Ints, chances: Floats
) -> tuple[NDArray[np.intp], Weighed]:
    """Return which rows are handed on, the sample and pulses, and what they stand for.

    Without a ledger: all of them, for themselves, with nothing promised.
    """
    if ledger is None:
        rows = len(event_us)
        ones = np.ones((rows, 1))
        weighed = Weighed(
            np.ones(rows, dtype=bool),
            np.ones(rows),
            ones,
            np.zeros((rows, 1)),
            np.tile(NO_NUMBER, (rows, 1)),
        )
    else:
        weighed = ledger.weigh(event_us, arrival_us, chances)
    handed_on = weighed.keep.copy()
    newest = max(len(event_us) - PULSES, 0)
    handed_on[np.argpartition(event_us, newest)[newest:] if newest else slice(None)] = True
    return np.flatnonzero(handed_on), weighed


def sample_column(weighed: Weighed, rows: NDArray[np.intp], delays_us: Ints) -> pa.Array:
    """Make the column ``sample`` of some of the rows."""
    sampled = weighed.keep[rows]
    return pa.StructArray.from_arrays(
        [
            pa.array(weighed.rates[rows]),
            pa.array(delays_us / 1e6, mask=~sampled),
            _lists(weighed.weights[rows] * sampled[:, np.newaxis]),
            _lists(weighed.doubts[rows]),
            _lists(weighed.usual[rows]),
        ],
        names=["rate", "delay", "weights", "doubts", "usual"],
    )


def _lists(values: Floats) -> pa.Array:
    rows, width = values.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel()))
