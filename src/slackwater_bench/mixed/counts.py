"""How many queries of each kind."""

from collections.abc import Sequence


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
