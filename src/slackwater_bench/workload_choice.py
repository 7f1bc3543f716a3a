"""Which workloads can be measured, by the names that users type."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from slackwater.common.plugins import load_object
from slackwater.core.errors import UsageError
from slackwater_bench.workloads.base import WindowGrid, Workload

# Imported when chosen, so that a trial loads only its own.
WORKLOADS = {
    "ysb": "slackwater_bench.workloads.ysb:Ysb",
    "linear-road": "slackwater_bench.workloads.linear_road:LinearRoad",
    "nyc-taxi": "slackwater_bench.workloads.nyc_taxi:NycTaxi",
    "kmeans": "slackwater_bench.workloads.kmeans:KMeans",
    "payments": "slackwater_bench.workloads.payments:Payments",
    "catch-up": "slackwater_bench.workloads.catch_up:CatchUp",
}


def workload_class(name: str) -> type[Workload]:
    """The class of a workload.

    >>> workload_class("ysb").columns
    ('campaign_id', 'count')
    """
    if name not in WORKLOADS:
        raise UsageError(f"unknown workload {name!r}; known: {', '.join(WORKLOADS)}")
    kind: type[Workload] = load_object(WORKLOADS[name])
    return kind


def workload_options(name: str, texts: Sequence[str]) -> dict[str, Any]:
    """Options of a workload, each given as ``key=value``.

    >>> workload_options("linear-road", ["variant=statistics", "last_window_third=true"])
    {'variant': 'statistics', 'last_window_third': True}
    >>> workload_options("ysb", ["ads=3"])
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: ysb has no option 'ads'; it has: ads_per_campaign, campaigns
    """
    taken = {"traffic", "window_s", "slide_s", "phase_s", "watermark_s"}
    known = sorted({option.name for option in fields(workload_class(name))} - taken)
    found = {}
    for text in texts:
        key, _, value = text.partition("=")
        if key not in known:
            raise UsageError(f"{name} has no option {key!r}; it has: {', '.join(known)}")
        found[key] = parse_value(value)
    return found


def workload_with_options(text: str) -> tuple[str, dict[str, Any]]:
    """A workload with options of its own.

    >>> workload_with_options("ysb:campaigns=10")
    ('ysb', {'campaigns': 10})
    """
    name, *options = text.split(":")
    return name, workload_options(name, options)


def workload_text(name: str, options: dict[str, Any]) -> str:
    """The other way round.

    >>> workload_text("ysb", {"campaigns": 10})
    'ysb:campaigns=10'
    """
    return ":".join([name, *(f"{key}={value}" for key, value in options.items())])


def parse_value(text: str) -> Any:
    """A value as typed: JSON where it is, else the text itself.

    >>> parse_value("0.9"), parse_value("paper")
    (0.9, 'paper')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def window_of(name: str, window_s: float | None, slide_s: float | None) -> tuple[float, float]:
    """Length and slide of a workload's windows; what is not given is the workload's own.

    >>> window_of("ysb", None, None), window_of("ysb", 6.0, None)
    ((3.0, 3.0), (6.0, 6.0))
    """
    usual: dict[str, Any] = {field.name: field.default for field in fields(workload_class(name))}
    window_s = usual["window_s"] if window_s is None else window_s
    slide_s = usual["slide_s"] if slide_s is None else slide_s
    slide_s = window_s if slide_s is None else slide_s
    WindowGrid.of_seconds(window_s, slide_s, 0.0)  # refuses what cannot be
    return window_s, slide_s
