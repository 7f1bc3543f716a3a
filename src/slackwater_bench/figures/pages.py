"""Puts tables into pages, each between two marks that name it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slackwater.core.errors import UsageError
from slackwater_bench.figures.plan import PLAN, Figure

END = "<!-- end of figures -->"
_BLOCK = re.compile(r"<!-- figures: (?P<name>[\w-]+) -->\n.*?" + re.escape(END), re.DOTALL)


def pages_of(root: Path) -> list[Path]:
    """Return the pages of a checkout."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def results_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the result files of a folder hold, by the names of their figures."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def written(text: str, results: Mapping[str, dict[str, Any]]) -> str:
    """Return a page with its tables as they are in the results.

    >>> page = "<!-- figures: nothing -->\\n<!-- end of figures -->"
    >>> written(page, {})
    Traceback (most recent call last):
        ...
    slackwater.core.errors.UsageError: a page has a place for 'nothing', which nobody has measured
    """
    known = {figure.name: figure for figure in PLAN}

    def block(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in known or name not in results:
            raise UsageError(f"a page has a place for {name!r}, which nobody has measured")
        return f"<!-- figures: {name} -->\n{shown(known[name], results[name])}\n{END}"

    return _BLOCK.sub(block, text)


def shown(figure: Figure, result: Mapping[str, Any]) -> str:
    """Return a table with what is to be known of it."""
    return f"{figure.table(result['rows'])}\n\n{_about(result)}"


def _about(result: Mapping[str, Any]) -> str:
    at = result["conditions"]
    machine = at["machine"]
    rounds = max((row.get("rounds", 0) for row in result["rows"]), default=0)
    marks = f"{rounds} round{'s' if rounds > 1 else ''}, {machine['cores']} cores, {at['date']}, "
    marks += f"code {at['commit']}, PySpark {at['versions']['pyspark']}"
    if at["disturbed"]:
        marks += ", **beside other load**"
    return f"`slackwater {result['command']}` ({marks})"
