"""Events through chains of operators, in bulk: all queries are rows of the same arrays.

Progress is counted in events *at the source*: an operator has done x when all that became of the
first x events has passed it. ``done`` has a column for what has come in, then one an operator.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_ROUNDS = 6  # of handing out what others leave


def run_paths(done: Floats, taken_s: Floats, given_s: Floats, depth: Ints) -> tuple[Floats, Floats]:
    """Each row with time on a core: what is under way first, then from the source on.

    Only the first ``depth`` operators of a row run. Returns what is done then, and the time left.

    >>> done = np.array([[10.0, 4.0, 2.0]])
    >>> after, left_s = run_paths(done, np.array([[1.0, 1.0]]), np.array([6.0]), np.array([2]))
    >>> after.tolist(), left_s.tolist()
    ([[10.0, 6.0, 6.0]], [0.0])
    """
    done, left_s = done.copy(), given_s.copy()
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
    return done, left_s


def wanted_by_threads(done: Floats, work_s: Floats, room: Floats) -> Floats:
    """Time that each operator's thread can use: no operator runs far ahead of the next one.

    ``room`` is how many events of the source may wait before each operator.
    """
    ahead = done[:, :-1] - done[:, 1:]
    free = np.full(ahead.shape, np.inf)
    free[:, :-1] = room[:, 1:] - ahead[:, 1:]
    wanted: Floats = np.clip(np.minimum(ahead, free), 0.0, None) * work_s
    return wanted


def run_threads(done: Floats, work_s: Floats, room: Floats, given_s: Floats) -> Floats:
    """Every operator on a thread of its own with so much time; changes ``done``, returns the time
    used."""
    used = np.zeros(work_s.shape)
    for operator in range(work_s.shape[1], 0, -1):
        each_s = work_s[:, operator - 1]
        moved = np.minimum(
            done[:, operator - 1] - done[:, operator], given_s[:, operator - 1] / each_s
        )
        if operator < work_s.shape[1]:
            before_next = done[:, operator] - done[:, operator + 1]
            moved = np.minimum(moved, np.clip(room[:, operator] - before_next, 0.0, None))
        done[:, operator] += moved
        used[:, operator - 1] = moved * each_s
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
