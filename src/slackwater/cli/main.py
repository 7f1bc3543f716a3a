"""The command line: ``slackwater COMMAND --help`` tells the rest."""

import logging
import os
import signal
import sys
from typing import Annotated

import typer

from slackwater import __version__
from slackwater.cli.checkpoints import checkpoints
from slackwater.cli.extensions import ExtensibleGroup
from slackwater.cli.middleware import outside
from slackwater.cli.planning import planning
from slackwater.cli.running import running
from slackwater.cli.setup import setup
from slackwater.cli.starting import starting
from slackwater.common.logs import configure
from slackwater.core.errors import SlackwaterError, UsageError

EXTRAS = {"matplotlib": "report", "psutil": "bench"}  # what is not installed for everyone

app = typer.Typer(
    cls=ExtensibleGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for group in (setup, starting, running, planning, outside, checkpoints):
    app.add_typer(group)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"slackwater {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Schedule many Spark Structured Streaming queries on shared machines."""


def main() -> None:
    """Run a command; every error that we understand is one line and an exit status."""
    configure(_usual_log())
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # modules of the user's are named from where they stand
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # engines are ended
    try:
        sys.exit(app(standalone_mode=False))
    except SlackwaterError as error:
        print(f"slackwater: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        extra = f"slackwater[{EXTRAS[error.name]}]"
        print(f"slackwater: this needs {error.name}: pip install '{extra}'", file=sys.stderr)
        sys.exit(UsageError.exit_status)
    except typer.TyperException as error:  # an option or a command that there is not
        if error.format_message():  # else the help has been printed
            print(_misuse(error), file=sys.stderr)
        sys.exit(error.exit_code)


def _usual_log() -> logging.Handler:
    from rich.console import Console
    from rich.logging import RichHandler

    handler = RichHandler(console=Console(stderr=True), show_path=False)
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler


def _misuse(error: typer.TyperException) -> str:
    """Say in one line what is wrong, and where to read more."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "slackwater"
    return f"slackwater: {message}; {command} --help tells the rest"
