"""What every workload with an approximate form says of it."""

import numpy as np
import pytest

from slackwater.sampling.aggregates import Aggregate
from slackwater.traffic import Traffic
from slackwater_bench.workloads.base import ApproximateWorkload
from slackwater_bench.workloads.kmeans import KMeans
from slackwater_bench.workloads.nyc_taxi import NycTaxi
from slackwater_bench.workloads.payments import Payments
from slackwater_bench.workloads.ysb import Ysb

Kind = type[ApproximateWorkload]

TRAFFIC = Traffic(start_s=0, rate="500", delays="exponential:60ms", seed=3)
END_US = 9_000_000


@pytest.mark.parametrize("kind", [Ysb, NycTaxi, KMeans, Payments])
class TestEverySampledWorkload:
    def test_its_aggregates_can_be_had_and_its_truth_has_them(self, kind: Kind) -> None:
        workload = kind(traffic=TRAFFIC)
        names = [Aggregate.parse(*each).name for each in workload.aggregates.items()]
        truth = workload.true_values(END_US)
        assert truth
        for group, values in truth.items():
            assert len(group) == len(workload.by)
            assert list(values) == names

    def test_a_group_that_does_not_exist_is_as_wrong_as_can_be(self, kind: Kind) -> None:
        assert kind(traffic=TRAFFIC).error(None, {}) == np.inf


@pytest.mark.parametrize("kind", [Ysb, NycTaxi, Payments])
def test_the_truth_has_no_error_and_a_tenth_more_has_a_tenth(
    kind: Kind,
) -> None:
    workload = kind(traffic=TRAFFIC)
    for values in workload.true_values(END_US).values():
        assert workload.error(values, values) == 0
        more = {name: 1.1 * value for name, value in values.items()}
        assert workload.error(values, more) == pytest.approx(0.1)


def test_centres_of_other_points_have_a_positive_error() -> None:
    workload = KMeans(traffic=TRAFFIC)
    (truth,) = workload.true_values(END_US).values()
    assert workload.error(truth, {"clusters": [0.0] * 16}) > 0.5
