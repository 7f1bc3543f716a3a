"""The experiments, by name, one a file."""

from slackwater.common.plugins import Family
from slackwater_bench.simulate.experiment import Experiment

_family: Family[Experiment] = Family(__name__, Experiment, "experiment")  # type: ignore[type-abstract]
names, load = _family.names, _family.load
