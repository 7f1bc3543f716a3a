"""The command line: ``slackwater COMMAND --help`` tells the rest."""

import logging
import os
import signal
import sys
import threading
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler

from slackwater.bench.commands import bench
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.logs import configure
from slackwater.engines.spark import wire
from slackwater.simulate.commands import simulate
from slackwater.terminal import (
    JsonFile,
    ReportFolder,
    console,
    make_folder,
    texts,
    with_status,
    write_json,
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(bench, name="bench", no_args_is_help=True)
app.add_typer(simulate, name="simulate", no_args_is_help=True)

DASHBOARD_PORT = 8461
Port = Annotated[int, typer.Option(min=0, max=65535, help="Of the page; 0: any that is free.")]
FleetName = Annotated[
    str | None, typer.Option("--fleet", help="Name of the fleet; default: the only one running.")
]


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
    from slackwater import project

    for path in project.write(folder):
        _print(str(path))
    where = "" if folder == Path(".") else f"cd {folder} && "
    _print(f"now: {where}slackwater run --dashboard")


@app.command()
def run(
    file: Annotated[
        Path | None, typer.Argument(help="Default: fleet.toml here or in a folder above.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Instead of the file's.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master instead of the file's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, but hold nothing.")] = False,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after so long.")] = None,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Also serve the live page on 127.0.0.1.")
    ] = False,
    port: Port = DASHBOARD_PORT,
) -> None:
    """Run the queries of a fleet file and show them live. Ctrl-C stops cleanly.

    The file names each query as module:function; the function takes the Spark session and returns
    a streaming DataFrame (or df.writeStream…). Started again, queries go on from their checkpoints.
    """
    from slackwater import config
    from slackwater.launch import Launch

    path = config.find(file, Path.cwd())
    fleet = config.load(path)
    if policy is not None:
        fleet = fleet.model_copy(update={"policy": policy, "parameters": {}})
    if master is not None:
        fleet = fleet.model_copy(
            update={"spark": fleet.spark.model_copy(update={"master": master})}
        )
    launch = Launch(fleet, path.parent, dry_run=dry_run)
    with ExitStack() as beside:
        if dashboard:
            from slackwater.dashboard import command

            page = beside.enter_context(
                command.DashboardProcess(fleet.name or wire.own_name(), port)
            )
            _print(command.invitation(page.url, console.is_terminal))
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
) -> None:
    """Run the queries of a fleet file on several workers. Ctrl-C stops cleanly.

    Each section [workers.NAME] is a Spark application of its own. Queries go to the worker with the
    most free CPU; those of a worker that dies are placed again. Queries that are added to the file
    while it runs are started, those that are taken from it stop.
    """
    from slackwater import config
    from slackwater.workers.commands import supervise

    path = config.find(file, Path.cwd())
    supervise(config.load(path), path, console, seconds, watch)


@app.command()
def worker(
    name: Annotated[str, typer.Argument(help="As in the section [workers.NAME].")],
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
    from slackwater import config
    from slackwater.workers.commands import work

    path = config.find(file, Path.cwd())
    work(config.load(path), path, name, connect)


@app.command()
def explain(
    fleet: FleetName = None,
    last: Annotated[int, typer.Option(help="How many decisions, newest first.")] = 20,
    query: Annotated[str | None, typer.Option(help="Only this query's.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Show the last decisions of a running fleet: which query, why, and who else waited.

    A sweep reads the event that completes a window, an emit writes its result, a drain reads ahead.
    Slack is how long the query could still wait; below zero its result is on its way already.
    "watermark due" is when the watermark that completes the window was expected, seen from the
    moment of the decision, with its interval; "cost" covers all batches that the result needs.
    """
    from slackwater.explain import decision_table

    found = wire.ask(_socket(fleet), "decisions", last=last, query=query)
    if not found:
        console.print("no decision yet" + (f" about a query named {query!r}" if query else ""))
    console.print(decision_table(found))
    write_json(json_file, found)


@app.command()
def status(fleet: FleetName = None, json_file: JsonFile = None) -> None:
    """Show every query of a running fleet once: its state, slack, last latency and lag."""
    from slackwater.dashboard.command import look
    from slackwater.dashboard.table import status_table

    found = look(_socket(fleet))
    console.print(status_table(found["fleets"][0], found["queries"]))
    write_json(json_file, found)


@app.command()
def record(
    file: Annotated[Path, typer.Argument(help="Where to: lines of JSON.")],
    fleet: FleetName = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after so long.")] = None,
) -> None:
    """Keep the decisions and metrics of a running fleet in a file, until Ctrl-C."""
    from slackwater import recording

    socket, stop = _socket(fleet), threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    found = with_status(
        lambda show: recording.record(socket, file, stop.is_set, show, seconds), quiet=True
    )
    kinds = ", ".join(f"{number} of kind {kind}" for kind, number in sorted(found.items()))
    _print(f"{file}: {kinds}")


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="Of slackwater record.")],
    policies: Annotated[
        str, typer.Option(help="Under which it is replayed, besides its own.")
    ] = "klink,fcfs,spark",
    json_file: JsonFile = None,
    report: ReportFolder = None,
) -> None:
    """What would have come of a recorded run under other policies, in the simulator.

    The recorded policy is replayed too: how far its figures are from the recorded ones is how far
    the model is off. See docs/recording.md for what it knows and what it does not.
    """
    from slackwater import policies as family
    from slackwater import recording
    from slackwater.bench.report import write_report
    from slackwater.recording.table import replay_table

    for name in texts(policies):
        family.load(name)
    story = recording.load(file)
    make_folder(report)
    result = with_status(lambda show: recording.replay(story, texts(policies), show))
    console.print(replay_table(result))
    write_json(json_file, result)
    if report is not None:
        _print(f"report: {write_report(result, report)}")


@app.command()
def dashboard(
    fleet: Annotated[
        list[str] | None, typer.Option("--fleet", help="Only this one; default: all that run.")
    ] = None,
    port: Port = DASHBOARD_PORT,
) -> None:
    """Serve the live page of running fleets on 127.0.0.1, with /metrics for Prometheus.

    Everyone on this machine may look; switching a policy, pausing a query and `off` take the token
    that is printed. Ctrl-C ends the page, not the fleets.
    """
    from slackwater.dashboard import command

    command.serve(
        fleet or [], port, lambda url: _print(command.invitation(url, console.is_terminal))
    )


@app.command()
def off(fleet: FleetName = None) -> None:
    """Open all gates of a running fleet: its queries go on as plain Spark."""
    wire.ask(_socket(fleet), "control", action="off")
    console.print("off: all gates are open")


@app.command()
def on(fleet: FleetName = None) -> None:
    """Hold the queries of a running fleet again."""
    wire.ask(_socket(fleet), "control", action="on")
    console.print("on: queries are held")


@app.command()
def doctor(json_file: JsonFile = None) -> None:
    """Check what Slackwater needs, and say how to get what is missing."""
    from slackwater.doctor import examine

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
    from slackwater import config, policies
    from slackwater import plan as planning
    from slackwater.engines.spark.members import max_wait_s
    from slackwater.launch import Launch
    from slackwater.simulate import calibrate
    from slackwater.simulate.prediction import Calibration

    path = config.find(file, Path.cwd())
    fleet = config.load(path)
    chosen, parameters = (policy, {}) if policy else (fleet.policy, fleet.parameters)
    policies.load(chosen, **parameters)
    known = calibrate.load(calibration) if calibration is not None else Calibration()
    if driver_cores is not None and not known.costs.driver:
        raise UsageError("--driver-cores needs a --calibration that knows the driver's share")
    triggers_s = {name: planning.trigger_s(name, q.trigger) for name, q in fleet.queries.items()}
    if calibration is None:
        console.print("no --calibration: figures are rough", highlight=False)
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
    from slackwater.middleware import command
    from slackwater.middleware.file import load as load_file

    def say(line: str) -> None:
        console.print(line, highlight=False, markup=False)

    chosen = None if file is None else load_file(file)
    if restore:
        if not command.restore(None if chosen is None else chosen.name, say):
            say("nothing was left")
        return
    if chosen is None:
        raise UsageError("name a file: slackwater middleware FILE (docs/middleware.md)")
    if switch is not None:
        policy, _, state = switch.partition("=")
        if state not in ("on", "off", "auto"):
            raise UsageError(f"--switch takes POLICY=on, =off or =auto, not {switch!r}")
        on = None if state == "auto" else state == "on"
        command.ask(chosen.name, "switch", policy=policy, on=on)
        say(f"{policy}: {state}")
    elif status:
        found = command.ask(chosen.name, "status")
        console.print_json(data=found)
        write_json(json_file, found)
    elif dry_run:
        for line in command.dry_run(chosen, say, 2.0 if seconds is None else seconds):
            say(line)
    else:
        write_json(json_file, command.run(chosen, say, seconds))


@app.command()
def adopt(
    checkpoint: Annotated[str, typer.Argument(help="Of a stopped plain query.")],
    copy: Annotated[
        str | None, typer.Argument(help="New folder for the copy; default: CHECKPOINT-gated.")
    ] = None,
) -> None:
    """Convert a copy of a plain checkpoint so that a source-gated query resumes from it."""
    from slackwater.engines.spark import checkpoint as checkpoints

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
    from slackwater.engines.spark import checkpoint as checkpoints

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
    try:
        app()
    except SlackwaterError as error:
        print(f"slackwater: {error}", file=sys.stderr)
        sys.exit(error.exit_status)


def _print(line: str) -> None:
    """As it is, however long: it may be copied."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def _socket(fleet: str | None) -> Path:
    running = wire.sockets()
    names = ", ".join(path.stem for path in running)
    if not running:
        raise UsageError("no fleet is running; start one with `slackwater run`")
    if fleet is not None:
        if wire.socket_path(fleet) not in running:
            raise UsageError(f"no fleet named {fleet!r} is running; these are: {names}")
        return wire.socket_path(fleet)
    if len(running) > 1:
        raise UsageError(f"running fleets: {names}; name one with --fleet")
    return running[0]


if __name__ == "__main__":
    main()
