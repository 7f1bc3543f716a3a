"""Results of benchmarks as they go to JSON; one shows itself in a notebook."""

import json
from pathlib import Path
from typing import Any, Self, TypedDict

from slackwater.core.errors import UsageError


class Panel(TypedDict):
    """A plot with its data."""

    title: str
    caption: str
    x_label: str
    y_label: str
    series: dict[str, list[list[float | None]]]  # by name: x, y, low, high; the last may be none


class Findings(TypedDict):
    """What an experiment found."""

    rows: list[dict[str, Any]]  # fields of a trial and its figures
    panels: list[Panel]


class BenchResult(dict[str, Any]):
    """What ``slackwater bench --json`` and ``slackwater replay --json`` write.

    >>> shown = BenchResult({"runs": [{"policy": "klink", "latencies_s": [1.0, 3.0]}]})
    >>> "klink" in shown._repr_html_() and "2.00" in shown._repr_html_()
    True
    """

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a file."""
        try:
            found = json.loads(Path(path).read_text())
            return cls(found)
        except (OSError, ValueError, TypeError) as error:
            raise UsageError(f"{path} is no result of a benchmark: {error}") from error

    def _repr_html_(self) -> str:
        # What draws plots is loaded only where something is shown.
        from slackwater.report.palette import Palette
        from slackwater.report.runs import Runs
        from slackwater.report.table import table

        runs = Runs(self)
        return table(runs, Palette(runs.policies))
