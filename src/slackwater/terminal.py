"""What all commands share: where they print, and how they write JSON."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

# Tables go to files and pipes in full width.
console = Console(width=None if sys.stdout.isatty() else 180)

JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the result here.")]


def write_json(path: Path | None, value: Any) -> None:
    """Write a result where ``--json`` says, if it does."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=1) + "\n")
