"""Events through chains of operators, in bulk: all queries are rows of the same arrays.

Progress is counted in events *at the source*: an operator has done x when all that became of the
first x events has passed it. ``done`` has a column for what has come in, then one an operator.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

FEW = 1e-6  # events: less than that is nothing
SLICE_S = 0.003  # that an operating system gives a thread before the next one's turn
SWITCH_S = 0.0001  # lost when a core goes over to another query's data

_ROUNDS = 6  # of handing out what others leave
_PASSES = 8  # over threads, in a step


def run_paths(done: Floats, taken_s: Floats, given_s: Floats, depth: Ints) -> tuple[Floats, Floats]:
    """Run each row with time on a core: what is under way first, then from the source on.

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


def run_in_order(
    done: Floats, taken_s: Floats, depth: Ints, cores: int, step_s: float
) -> tuple[Floats, float]:
    """Run rows in this order, each on one core; a core whose row runs dry takes the next.

    Returns what is done then, and the time used.
    """
    whole_s = step_s - SWITCH_S
    after, left_s = run_paths(done, taken_s, np.full(len(done), whole_s), depth)
    used_s = whole_s - left_s
    spare_s = cores * whole_s - (np.cumsum(used_s) - used_s)  # when it is a row's turn
    if (spare_s < used_s).any():
        given_s = np.clip(spare_s, 0.0, used_s)
        after, left_s = run_paths(done, taken_s, given_s, depth)
        used_s = given_s - left_s
    return after, float(used_s.sum())


def run_shared(
    done: Floats,
    work_s: Floats,
    busy: Floats,
    room: Floats,
    weights: Floats,
    cores: int,
    step_s: float,
) -> float:
    """Run all operators as threads that share the cores by weight.

    Changes ``done``, returns the time used.

    ``busy`` is the share of its time that a thread computes and is not blocked.
    """
    crowded = np.count_nonzero(done[:, :-1] - done[:, 1:] > FEW) > cores
    useful = SLICE_S / (SLICE_S + SWITCH_S) if crowded else 1.0
    left_s, most_s = cores * step_s * useful, step_s * busy
    for _ in range(_PASSES):  # what one could not use for want of room is another's
        wanted_s = wanted_by_threads(done, work_s, room)
        shares = fair_shares(wanted_s, most_s, left_s, weights)
        used = run_threads(done, work_s, room, shares)
        most_s, left_s = most_s - used, left_s - float(used.sum())
        if left_s <= 1e-9 or not used.any():
            break
    return cores * step_s - left_s / useful


def wanted_by_threads(done: Floats, work_s: Floats, room: Floats) -> Floats:
    """Return time that each operator's thread can use: none runs far ahead of the next.

    ``room`` is how many events of the source may wait behind each operator.
    """
    ahead = done[:, :-1] - done[:, 1:]
    behind = np.concatenate((ahead[:, 1:], np.zeros((len(done), 1))), axis=1)
    wanted: Floats = np.clip(np.minimum(ahead, room - behind), 0.0, None) * work_s
    return wanted


def run_threads(done: Floats, work_s: Floats, room: Floats, given_s: Floats) -> Floats:
    """Run every operator on a thread of its own with so much time.

    Changes ``done``, returns the time used.
    """
    used = np.zeros(work_s.shape)
    for operator in range(work_s.shape[1], 0, -1):
        each_s = work_s[:, operator - 1]
        behind = done[:, operator] - done[:, operator + 1] if operator < work_s.shape[1] else 0.0
        moved = np.minimum(
            done[:, operator - 1] - done[:, operator], given_s[:, operator - 1] / each_s
        )
        moved = np.minimum(moved, np.clip(room[:, operator - 1] - behind, 0.0, None))
        done[:, operator] += moved
        used[:, operator - 1] = moved * each_s
    return used


def fair_shares(wanted_s: Floats, most_s: Floats, total_s: float, weights: Floats) -> Floats:
    """Share time by weight, where whoever needs less leaves the rest to the others.

    >>> wanted = np.array([[1.0, 9.0, 9.0]])
    >>> shares = fair_shares(wanted, np.full((1, 3), 8.0), 9.0, np.array([[1.0, 1.0, 3.0]]))
    >>> shares.round(6).tolist()
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
