"""Ends of windows."""

from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.windows import Window

lengths = st.sampled_from([0.1, 0.3, 0.7, 1.0, 3.0, 86400.0])


@given(lengths, st.floats(0, 10), st.floats(0, 2e9))
def test_the_next_end_is_later_and_no_more_than_a_slide(
    slide_s: float, offset_s: float, time_s: float
) -> None:
    window = Window("tumbling", slide_s, slide_s, offset_s)
    for _ in range(5):
        end_s = window.next_end(time_s)
        assert time_s < end_s <= time_s + slide_s + 1e-6 * max(1.0, time_s / 1e9)
        time_s = end_s
