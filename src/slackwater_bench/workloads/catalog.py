"""Which workloads can be measured: by the names that users type, or their own as module:Class."""

import random
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from slackwater.common.plugins import load_object
from slackwater.core.errors import UsageError
from slackwater.traffic import Traffic
from slackwater_bench.options import split_parameters

if TYPE_CHECKING:
    from slackwater_bench.workloads.base import Workload

AnyWorkload = TypeVar("AnyWorkload", bound="Workload")

# Imported when chosen, so that a trial loads only its own.
WORKLOADS = {
    "ysb": "slackwater_bench.workloads.ysb:Ysb",
    "linear-road": "slackwater_bench.workloads.linear_road:LinearRoad",
    "nyc-taxi": "slackwater_bench.workloads.nyc_taxi:NycTaxi",
    "kmeans": "slackwater_bench.workloads.kmeans:KMeans",
    "payments": "slackwater_bench.workloads.payments:Payments",
    "catch-up": "slackwater_bench.workloads.catch_up:CatchUp",
}
_ALL_HAVE = {"traffic", "window_s", "slide_s", "phase_s", "watermark_s"}


def workload_class(name: str) -> "type[Workload]":
    """Return the class of a workload.

    >>> workload_class("ysb").columns
    ('campaign_id', 'count')
    """
    from slackwater_bench.workloads.base import Workload

    if name not in WORKLOADS and ":" not in name:
        known = f"{', '.join(WORKLOADS)}, or your own as module:Class"
        raise UsageError(f"unknown workload {name!r}; known: {known}")
    kind = load_object(WORKLOADS.get(name, name))
    if not (isinstance(kind, type) and issubclass(kind, Workload)):
        raise UsageError(f"{name} is not a workload: derive it from {Workload.__module__}.Workload")
    return kind


def check_options(name: str, options: Mapping[str, Any]) -> None:
    """Refuse options that a workload does not have.

    >>> check_options("linear-road", {"variant": "statistics"})
    >>> check_options("ysb", {"ads": 3})
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: ysb has no option 'ads'; it has: ads_per_campaign, campaigns
    """
    known = sorted({option.name for option in fields(workload_class(name))} - _ALL_HAVE)
    for key in options:
        if key not in known:
            raise UsageError(f"{name} has no option {key!r}; it has: {', '.join(known)}")


def workload_with_options(text: str) -> tuple[str, dict[str, Any]]:
    """Read a workload with options of its own.

    >>> workload_with_options("ysb:campaigns=10")
    ('ysb', {'campaigns': 10})
    """
    name, options = split_parameters(text)
    check_options(name, options)
    return name, options


def window_of(name: str, window_s: float | None, slide_s: float | None) -> tuple[float, float]:
    """Return length and slide of a workload's windows; what is not given is the workload's own.

    >>> window_of("ysb", None, None), window_of("ysb", 6.0, None)
    ((3.0, 3.0), (6.0, 6.0))
    """
    from slackwater_bench.workloads.base import WindowGrid

    usual: dict[str, Any] = {field.name: field.default for field in fields(workload_class(name))}
    window_s = usual["window_s"] if window_s is None else window_s
    if not isinstance(window_s, int | float):
        raise UsageError(f"{name} has no window of its own: give --window")
    slide_s = usual["slide_s"] if slide_s is None else slide_s
    slide_s = window_s if slide_s is None else slide_s
    WindowGrid.of_seconds(window_s, slide_s, 0.0)  # refuses what cannot be
    return window_s, slide_s


def make_workloads(
    kind: "type[AnyWorkload]",
    queries: int,
    seed: int,
    phase: Callable[[random.Random], float],
    options: Mapping[str, Any],
    **traffic: Any,
) -> "dict[str, AnyWorkload]":
    """Make the queries of a fleet by name, each with traffic and phase of its own.

    Parameters
    ----------
    phase
        Where the windows of a query begin, from a source of chance.
    options
        Of the workload's constructor, the same for all.
    traffic
        Of :class:`slackwater.traffic.Traffic`, but for the seed.
    """
    chance = random.Random(seed)
    found = {}
    for index in range(queries):
        mine = Traffic(**traffic, seed=chance.randrange(1 << 30))
        found[f"q{index:03d}"] = kind(traffic=mine, phase_s=phase(chance), **options)
    return found
