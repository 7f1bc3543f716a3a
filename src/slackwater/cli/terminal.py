"""What all commands share: where they print, how they write JSON, and how they say what they do."""

import json
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from slackwater.core.errors import UsageError

# Tables go to files and pipes in full width.
console = Console(width=None if sys.stdout.isatty() else 180)

STDOUT = Path("-")


def _writable(path: Path | None) -> Path | None:
    """Refuse what cannot be a file before anything is measured."""
    if path is None:
        return None
    if path == STDOUT:
        console.stderr = True  # what is for people must not be among it
        return path
    if os.path.isdir(path):
        raise UsageError(f"cannot write {path}: it is a folder; name a file")
    above = next(folder for folder in path.absolute().parents if os.path.lexists(folder))
    if not os.path.isdir(above):
        raise UsageError(f"cannot write {path}: {above} is not a folder")
    return path


JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="Also write the result here; - is standard output, and tables go to standard error.",
        callback=_writable,
    ),
]

ReportFolder = Annotated[
    Path | None, typer.Option("--report", help="Also write a page with plots into this folder.")
]


FleetPath = Annotated[
    Path | None, typer.Argument(help="Default: fleet.toml here or in a folder above.")
]

DASHBOARD_PORT = 8461
Port = Annotated[int, typer.Option(min=0, max=65535, help="Of the page; 0: any that is free.")]


def write_json(path: Path | None, value: Any) -> None:
    """Write a result where ``--json`` says, if it does."""
    if path is None:
        return
    if path == STDOUT:
        print(json.dumps(value, indent=1), flush=True)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=1) + "\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def write_line(line: str) -> None:
    """Print a line as it is, however long: it may be copied."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def make_folder(folder: Path | None) -> None:
    """Make the report's folder before anything is measured, so that no result is lost."""
    if folder is None:
        return
    if find_spec("matplotlib") is None:
        raise UsageError("--report needs matplotlib: pip install 'slackwater[report]'")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write the report to {folder}: {error.strerror}") from error


def texts(text: str) -> list[str]:
    """Split a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def counts(text: str, option: str = "--queries") -> list[int]:
    """Read numbers, of queries, say.

    >>> counts("4, 8,12")
    [4, 8, 12]
    """
    try:
        found = [int(part) for part in texts(text)]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise UsageError(f"{option} takes numbers from 1, such as 8 or 4,8,12, not {text!r}")
    return found


def with_status(work: Callable[[Callable[[str], None]], Any], *, quiet: bool = False) -> Any:
    """Do some work that says what it is at: on a line that changes, or line by line in a file.

    ``quiet``: in a file not at all, because it says so often.
    """
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def show(line: str) -> None:
            progress.update(task, description=line)
            if not console.is_terminal and not quiet:
                console.print(line, highlight=False, markup=False)

        return work(show)
