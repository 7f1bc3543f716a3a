"""Commands before the first fleet: write a project, check the machine."""

from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.terminal import JsonFile, console, write_json, write_line

setup = typer.Typer()


@setup.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Made if it does not exist.")] = Path("."),
) -> None:
    """Write a small fleet project that runs as it is, to start from."""
    from slackwater.operations import project

    for path in project.write(folder):
        write_line(str(path))
    where = "" if folder == Path(".") else f"cd {folder} && "
    write_line(f"now: {where}slackwater run --dashboard")


@setup.command()
def doctor(json_file: JsonFile = None) -> None:
    """Check what Slackwater needs, and say how to get what is missing."""
    from slackwater.operations.doctor import examine

    findings = []
    for finding in examine():
        mark = "[green]ok[/]" if finding.ok else "[red]missing[/]"
        console.print(f"{mark:>20}  {finding.topic}: {finding.detail}", highlight=False)
        findings.append({"topic": finding.topic, "ok": finding.ok, "detail": finding.detail})
    write_json(json_file, findings)
    if not all(finding["ok"] for finding in findings):
        raise typer.Exit(1)
