"""How well the rate of a topic is known: what such a trial refuses."""

import pytest

from slackwater.core.errors import UsageError
from slackwater_bench.quality.rate import KEEPS_UP, RateTrial


@pytest.mark.parametrize("rate", ["steps:0=10,0.5=0,0.9=10", "burst:0:50:every=10:for=2"])
def test_a_rate_that_is_nothing_for_a_moment_is_refused(rate: str) -> None:
    """Errors are in parts of it."""
    with pytest.raises(UsageError, match="above 0 throughout"):
        RateTrial(arm=KEEPS_UP, rate=rate)
