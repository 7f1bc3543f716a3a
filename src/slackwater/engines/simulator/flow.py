"""Events through chains of operators, in bulk: all queries are rows of the same arrays.

Progress is counted in events *at the source*: an operator has done x when all that became of the
first x events has passed it. ``done`` has a column for what has come in, then one an operator.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_ROUNDS = 6  # of handing out what others leave


def run_paths(done: Floats, taken_s: Floats, budget_s: float, depth: Ints) -> Floats:
    """Each row on a core of its own: what is under way first, then from the source on.

    Only the first ``depth`` operators of a row run. Changes ``done``; returns the time left.

    >>> done = np.array([[10.0, 4.0, 2.0]])
    >>> left_s = run_paths(done, np.array([[1.0, 1.0]]), budget_s=6.0, depth=np.array([2]))
    >>> done.tolist(), left_s.tolist()
    ([[10.0, 6.0, 6.0]], [0.0])
    """
    left_s = np.full(len(done), budget_s)
    for operator in range(taken_s.shape[1], 1, -1):
        each_s = taken_s[:, operator - 1]
        ahead = done[:, operator - 1] - done[:, operator]
        moved = np.where(operator <= depth, np.minimum(ahead, left_s / each_s), 0.0)
        done[:, operator] += moved
        left_s -= moved * each_s
    running = np.arange(1, taken_s.shape[1] + 1) <= depth[:, None]
    path_s = (taken_s * running).sum(axis=1)
    moved = np.minimum(done[:, 0] - done[:, 1], left_s / path_s)
    done[:, 1:] += moved[:, None] * running
    left_s -= moved * path_s
    return left_s


def run_threads(done: Floats, work_s: Floats, given_s: Floats) -> Floats:
    """Every operator on a thread of its own with so much time; returns the time used."""
    moved = np.minimum(done[:, :-1] - done[:, 1:], given_s / work_s)
    done[:, 1:] += moved
    used: Floats = moved * work_s
    return used


def fair_shares(wanted_s: Floats, most_s: Floats, total_s: float, weights: Floats) -> Floats:
    """Time by weight, where whoever needs less leaves the rest to the others.

    >>> wanted = np.array([[1.0, 9.0, 9.0]])
    >>> fair_shares(wanted, np.full((1, 3), 8.0), 9.0, np.array([[1.0, 1.0, 3.0]])).tolist()
    [[1.0, 2.0, 6.0]]
    """
    limits = np.minimum(wanted_s, most_s)
    shares: Floats = np.zeros(wanted_s.shape)
    for _ in range(_ROUNDS):
        open_ = limits - shares > 1e-12
        left_s = total_s - float(shares.sum())
        if left_s <= 1e-9 or not open_.any():
            break
        part = np.where(open_, weights, 0.0)
        shares = np.minimum(limits, shares + left_s * part / part.sum())
    return shares
