"""How many micro-batches run at once where nobody says."""

from math import ceil

# A micro-batch plans, commits and waits for its slowest task: it keeps a core busy for less than
# its whole duration. Measured on two cores: three slots beat two and four (docs/klink.md).
SLOTS_PER_CORE = 1.5


def default_slots(cores: float) -> int:
    """Return how many micro-batches run at once on so many cores.

    >>> default_slots(2), default_slots(3)
    (3, 5)
    """
    return ceil(SLOTS_PER_CORE * cores)
