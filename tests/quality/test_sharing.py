"""Splitting what is left: against a slow, obvious version."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.quality.sharing import split_evenly


def slowly(wanted: list[float], left: float) -> list[float]:
    """Algorithm 3 as it is printed, for one worker."""
    shares = [0.0] * len(wanted)
    for done, place in enumerate(sorted(range(len(wanted)), key=lambda i: wanted[i])):
        shares[place] = min(wanted[place], left / (len(wanted) - done))
        left -= shares[place]
    return shares


workers = st.lists(
    st.tuples(st.lists(st.floats(0, 4), min_size=1, max_size=6), st.floats(0, 5)),
    min_size=1,
    max_size=4,
)


@given(workers)
def test_all_workers_at_once_are_as_one_after_another(found: list) -> None:
    wanted = np.array([wish for wishes, _ in found for wish in wishes])
    worker = np.array([w for w, (wishes, _) in enumerate(found) for _ in wishes])
    left = np.array([cores for _, cores in found])
    expected = [share for wishes, cores in found for share in slowly(wishes, cores)]
    assert np.allclose(split_evenly(wanted, worker, left), expected)


def test_nobody_wants_anything() -> None:
    assert split_evenly(np.zeros(0), np.zeros(0, np.intp), np.ones(2)).tolist() == []
