"""The command line: ``slackwater COMMAND --help`` tells the rest."""

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler

from slackwater.cli.running import DASHBOARD_PORT, Port, running
from slackwater.cli.terminal import JsonFile, console, with_status, write_json, write_line
from slackwater.common.logs import configure
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.ipc import wire
from slackwater_bench.commands import bench
from slackwater_bench.simulate.commands import simulate

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(bench, name="bench", no_args_is_help=True)
app.add_typer(simulate, name="simulate", no_args_is_help=True)
app.add_typer(running)


Page = Annotated[bool, typer.Option("--dashboard", help="Also serve the live page on 127.0.0.1.")]


@contextmanager
def _page(wanted: bool, fleets: list[str], port: int) -> Iterator[None]:
    """The page beside a fleet, as long as that runs."""
    if not wanted:
        yield
        return
    from slackwater.operations.dashboard import command

    with command.DashboardProcess(fleets, port) as page:
        write_line(command.invitation(page.url, console.is_terminal))
        yield


def _version(wanted: bool) -> None:
    if wanted:
        print(f"slackwater {version('slackwater')}")
        raise typer.Exit()


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and end.")
    ] = False,
) -> None:
    """Schedules many Spark Structured Streaming queries on shared machines."""


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Made if it does not exist.")] = Path("."),
) -> None:
    """Write a small fleet project that runs as it is, to start from."""
    from slackwater.operations import project

    for path in project.write(folder):
        write_line(str(path))
    where = "" if folder == Path(".") else f"cd {folder} && "
    write_line(f"now: {where}slackwater run --dashboard")


@app.command()
def run(
    file: Annotated[
        Path | None, typer.Argument(help="Default: fleet.toml here or in a folder above.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Instead of the file's.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master instead of the file's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, but hold nothing.")] = False,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after so long.")] = None,
    dashboard: Page = False,
    port: Port = DASHBOARD_PORT,
) -> None:
    """Run the queries of a fleet file and show them live. Ctrl-C stops cleanly.

    The file names each query as module:function; the function takes the Spark session and returns
    a streaming DataFrame (or df.writeStream…). Started again, queries go on from their checkpoints.
    """
    from slackwater.operations import fleet_file as config
    from slackwater.operations.launch import Launch

    path = config.find(file, Path.cwd())
    fleet = config.load(path)
    if policy is not None:
        fleet = fleet.model_copy(update={"policy": policy, "parameters": {}})
    if master is not None:
        fleet = fleet.model_copy(
            update={"spark": fleet.spark.model_copy(update={"master": master})}
        )
    launch = Launch(fleet, path.parent, dry_run=dry_run)
    with _page(dashboard, [fleet.name or wire.own_name()], port):
        raise typer.Exit(launch.run(console, seconds))


@app.command()
def fleet(
    file: Annotated[
        Path | None, typer.Argument(help="Default: fleet.toml here or in a folder above.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after so long.")] = None,
    watch: Annotated[
        Path | None, typer.Option(help="Append the status as a line of JSON a second.")
    ] = None,
    dashboard: Page = False,
    port: Port = DASHBOARD_PORT,
) -> None:
    """Run the queries of a fleet file on several workers. Ctrl-C stops cleanly.

    Each section \\[workers.NAME] is a Spark application of its own. Queries go to the worker with
    the most free CPU; those of a worker that dies are placed again. Queries that are added to the
    file while it runs are started, those that are taken from it stop.
    """
    from slackwater.operations import fleet_file as config
    from slackwater.operations.workers.commands import supervise

    path = config.find(file, Path.cwd())
    found = config.load(path)
    names = [f"{found.name or 'slackwater'}.{worker}" for worker in found.workers]
    with _page(dashboard, names, port):
        supervise(found, path, console, seconds, watch)


@app.command()
def worker(
    name: Annotated[str, typer.Argument(help="As in the section \\[workers.NAME].")],
    file: Annotated[
        Path | None, typer.Argument(help="Default: fleet.toml here or in a folder above.")
    ] = None,
    connect: Annotated[
        str | None, typer.Option(help="host:port of the supervisor, where it is elsewhere.")
    ] = None,
) -> None:
    """Run one worker of a fleet; `slackwater fleet` starts those of its own machine itself.

    The fleet's token comes from SLACKWATER_TOKEN or a file of mode 0600.
    """
    from slackwater.operations import fleet_file as config
    from slackwater.operations.workers.commands import work

    path = config.find(file, Path.cwd())
    work(config.load(path), path, name, connect)


@app.command()
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


@app.command()
def plan(
    file: Annotated[
        Path | None, typer.Argument(help="Default: fleet.toml here or in a folder above.")
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Of the machine or cluster; default: this one's.")
    ] = None,
    p99: Annotated[
        float | None, typer.Option(min=0.01, help="Target in seconds: what would it take?")
    ] = None,
    rate: Annotated[
        float, typer.Option(min=0.001, help="Events/s of queries whose section names no rate.")
    ] = 1000.0,
    policy: Annotated[str | None, typer.Option(help="Instead of the file's.")] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="Of slackwater simulate calibrate --json.")
    ] = None,
    driver_cores: Annotated[
        float | None, typer.Option(min=0.1, help="Of a driver on a machine of its own.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Predict a fleet's latencies, and how many queries, cores or drivers a target needs.

    Windows and watermarks are read from the queries themselves: Spark is started, they are not.
    Rates, triggers, output modes, priorities and max_wait are the file's.
    What a micro-batch costs comes from --calibration; without it the model's own figures are used,
    which are of a small machine.
    """
    from slackwater import policies
    from slackwater.engines.simulator.prediction import MEASURED, load_calibration
    from slackwater.engines.spark.queries.registry import max_wait_s
    from slackwater.operations import fleet_file as config
    from slackwater.operations import planning
    from slackwater.operations.launch import Launch

    path = config.find(file, Path.cwd())
    fleet = config.load(path)
    chosen, parameters = (policy, {}) if policy else (fleet.policy, fleet.parameters)
    policies.load(chosen, **parameters)
    known = load_calibration(calibration) if calibration is not None else MEASURED
    if driver_cores is not None and not known.costs.driver:
        raise UsageError("--driver-cores needs a --calibration that knows the driver's share")
    triggers_s = {name: planning.trigger_s(name, q.trigger) for name, q in fleet.queries.items()}
    if calibration is None:
        write_line("no --calibration: costs are those of YSB queries on a two-core machine")
    found = Launch(fleet, path.parent).outlines()
    for line in planning.not_planned(fleet, [n for n, one in found.items() if one.own_writer]):
        console.print(line, highlight=False)
    planner = planning.Planner(
        [
            planning.Planned(
                name,
                one.deadlines,
                fleet.queries[name].rate or rate,
                None if one.own_writer else triggers_s[name],
                fleet.queries[name].priority,
                max_wait_s(fleet.queries[name].max_wait or fleet.max_wait, one.deadlines),
            )
            for name, one in found.items()
        ],
        "spark" if fleet.gate == "none" else chosen,  # without a gate no policy decides
        known,
        driver_cores,
        fleet.slots,
        {} if fleet.gate == "none" else parameters,
    )
    answer = with_status(
        lambda show: planning.plan(planner, cores or os.cpu_count() or 1, p99, show)
    )
    console.print(planning.table(answer))
    for sentence in planning.sentences(answer):
        console.print(sentence, highlight=False)
    write_json(json_file, answer)


@app.command()
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
    from slackwater.operations.middleware import command
    from slackwater.operations.middleware.file import load as load_file

    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False)

    chosen = None if file is None else load_file(file)
    if restore:
        if not command.restore(None if chosen is None else chosen.name, say):
            say("nothing was left")
        return
    if switch is not None or status:
        name = command.only_one() if chosen is None else chosen.name
        if switch is not None:
            policy, _, state = switch.partition("=")
            if state not in ("on", "off", "auto"):
                raise UsageError(f"--switch takes POLICY=on, =off or =auto, not {switch!r}")
            on = None if state == "auto" else state == "on"
            command.ask(name, "switch", policy=policy, on=on)
            say(f"{policy}: {state}")
        if status:
            found = command.ask(name, "status")
            console.print_json(data=found)
            write_json(json_file, found)
        return
    if chosen is None:
        raise UsageError("name a file: slackwater middleware FILE (docs/middleware.md)")
    if dry_run:
        found = command.dry_run(chosen, say, 2.0 if seconds is None else seconds)
    else:
        found = command.run(chosen, say, seconds)
    write_json(json_file, found)


@app.command()
def adopt(
    checkpoint: Annotated[str, typer.Argument(help="Of a stopped plain query.")],
    copy: Annotated[
        str | None, typer.Argument(help="New folder for the copy; default: CHECKPOINT-gated.")
    ] = None,
) -> None:
    """Convert a copy of a plain checkpoint so that a source-gated query resumes from it."""
    from slackwater.engines.spark.checkpoints import convert as checkpoints

    copy = copy or f"{checkpoint.rstrip('/')}-gated"
    console.print(str(checkpoints.adopt(checkpoint, copy)), highlight=False)


@app.command()
def release(
    checkpoint: Annotated[str, typer.Argument(help="Of a stopped source-gated query.")],
    copy: Annotated[
        str | None, typer.Argument(help="New folder for the copy; default: CHECKPOINT-plain.")
    ] = None,
) -> None:
    """Convert a copy of a source-gated checkpoint so that plain Spark resumes from it."""
    from slackwater.engines.spark.checkpoints import convert as checkpoints

    copy = copy or f"{checkpoint.rstrip('/')}-plain"
    console.print(str(checkpoints.release(checkpoint, copy)), highlight=False)


def main() -> None:
    """Entry point: every error that we understand is one line and an exit status."""
    usual = RichHandler(console=Console(stderr=True), show_path=False)
    usual.setFormatter(logging.Formatter("%(message)s"))
    configure(usual)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # modules of the user's are named from where they stand
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # engines are ended
    try:
        sys.exit(app(standalone_mode=False))
    except SlackwaterError as error:
        print(f"slackwater: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
    except typer.TyperException as error:  # an option or a command that there is not
        if error.format_message():  # else the help has been printed
            print(_misuse(error), file=sys.stderr)
        sys.exit(error.exit_code)


def _misuse(error: typer.TyperException) -> str:
    """One line, and where to read more."""
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "slackwater"
    return f"slackwater: {message}; {command} --help tells the rest"
