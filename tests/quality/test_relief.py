"""Who leaves a worker whose minimums do not fit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.quality.relief import choose

instances = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0.01, 1.0)), min_size=1, max_size=12
).map(lambda rows: tuple(np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)))


@given(instances, st.floats(0.01, 0.99))
def test_at_least_what_was_asked_for_is_released(found: tuple, part: float) -> None:
    priority, needs = found
    asked = part * needs.sum()
    assert needs[choose(asked, priority, needs)].sum() >= asked - 1e-6


@given(instances, st.floats(0.01, 0.99))
def test_no_instance_leaves_that_could_be_spared(found: tuple, part: float) -> None:
    priority, needs = found
    asked = part * needs.sum()
    chosen = choose(asked, priority, needs)
    released = needs[chosen].sum()
    assert all(released - needs[one] < asked for one in chosen)


@given(instances, st.floats(0.01, 0.99))
def test_no_priority_is_touched_while_lower_ones_suffice(found: tuple, part: float) -> None:
    priority, needs = found
    asked = part * needs.sum()
    highest = priority[choose(asked, priority, needs)].max()
    assert needs[priority < highest].sum() < asked


def test_the_small_ones_go_where_that_is_enough() -> None:
    needs = np.array([0.2, 0.3, 0.9])
    assert choose(0.25, np.ones(3), needs).tolist() == [1]


def test_more_than_there_is_takes_everybody() -> None:
    assert len(choose(9.0, np.array([1.0, 2.0]), np.array([0.5, 0.5]))) == 2
