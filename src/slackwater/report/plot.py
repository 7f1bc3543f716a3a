"""A finished plot."""

from dataclasses import dataclass

from slackwater.report.palette import Look


@dataclass(frozen=True, slots=True)
class Plot:
    """What the page shows of it."""

    key: str  # unique on the page
    title: str
    caption: str  # one line: what it shows, and what better looks like
    svg: str
    legend: tuple[tuple[str, Look], ...] = ()  # empty if names stand on an axis
