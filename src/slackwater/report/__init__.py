"""Reports of benchmarks: one page that needs nothing else, from what ``--json`` writes."""

from pathlib import Path
from typing import Any

__all__ = ["write_report"]


def write_report(result: dict[str, Any], folder: Path) -> Path:
    """Write the page of a result into a folder; its path."""
    from slackwater.report import page  # draws plots; results are read without it

    return page.write_report(result, folder)
