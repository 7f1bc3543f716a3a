"""What the mixed fleet is made of, on Spark and in the simulator."""

from collections.abc import Sequence

RATE = 100  # rows/s: a whole number of milliseconds apart, so that counts are exact
DELAY_S = 1.0  # of every watermark
FRESH_S = 2.0  # how old a result without a window may be
USUAL = "usual"  # the fleet of all kinds
SLEEP_S = 4.0  # of a slow sink, at every batch


def in_proportion(whole: int, weights: Sequence[int]) -> list[int]:
    """Divide a number in proportion; what is left over goes to the largest remainders.

    >>> in_proportion(10, [5, 1, 1])
    [7, 2, 1]
    """
    shares = [whole * weight / sum(weights) for weight in weights]
    found = [int(share) for share in shares]
    by_rest = sorted(range(len(shares)), key=lambda place: found[place] - shares[place])
    for place in by_rest[: whole - sum(found)]:
        found[place] += 1
    return found
