"""The command that steers engines from outside."""

from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.terminal import JsonFile, console, write_json
from slackwater.core.errors import UsageError

outside = typer.Typer()


@outside.command()
def middleware(
    file: Annotated[
        Path | None, typer.Argument(help="Engines, and policies with their translators.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be set, and set nothing.")
    ] = False,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after so long.")] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Put back what a killed one left, and end.")
    ] = False,
    switch: Annotated[
        str | None, typer.Option(help="Tell the running one: POLICY=on, =off or =auto.")
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Of the running one.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Steer Spark, Flink and other engines from outside, through the kernel's scheduler.

    The engines are only looked at. Nice values, control groups and scheduling classes are put back
    at the end, and after a kill by the next start.
    """
    from slackwater.ipc.questions import AskStatus
    from slackwater.operations.middleware import command
    from slackwater.operations.middleware.file import load as load_file

    chosen = None if file is None else load_file(file)
    if restore:
        if not command.restore(None if chosen is None else chosen.name, _say):
            _say("nothing was left")
        return
    if switch is not None or status:
        name = command.only_one() if chosen is None else chosen.name
        if switch is not None:
            _switch(name, switch)
        if status:
            found = command.ask(name, AskStatus())
            console.print_json(data=found)
            write_json(json_file, found)
        return
    if chosen is None:
        raise UsageError("name a file: slackwater middleware FILE (docs/middleware.md)")
    if dry_run:
        found = command.dry_run(chosen, _say, 2.0 if seconds is None else seconds)
    else:
        found = command.run(chosen, _say, seconds)
    write_json(json_file, found)


def _switch(name: str, wanted: str) -> None:
    """Switch a policy of the running one: ``POLICY=on``, ``=off`` or ``=auto``."""
    from slackwater.ipc.questions import Switch
    from slackwater.operations.middleware import command

    policy, _, state = wanted.partition("=")
    if state not in ("on", "off", "auto"):
        raise UsageError(f"--switch takes POLICY=on, =off or =auto, not {wanted!r}")
    command.ask(name, Switch(policy=policy, on=None if state == "auto" else state == "on"))
    _say(f"{policy}: {state}")


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False)
