"""Commands that run the queries of a fleet file: in this process or on workers."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from slackwater.cli.terminal import DASHBOARD_PORT, FleetPath, Port, console, write_line
from slackwater.core.errors import UsageError

starting = typer.Typer()

Page = Annotated[bool, typer.Option("--dashboard", help="Also serve the live page on 127.0.0.1.")]


@contextmanager
def _page(wanted: bool, fleets: list[str], port: int) -> Iterator[None]:
    """Serve the page beside a fleet, as long as that runs."""
    if not wanted:
        yield
        return
    from slackwater.operations.dashboard import command

    with command.DashboardProcess(fleets, port) as page:
        write_line(command.invitation(page.url, console.is_terminal))
        yield


@starting.command()
def run(
    file: FleetPath = None,
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
    from slackwater.ipc.unix_socket import default_fleet_name
    from slackwater.operations import fleet_file as config

    path = config.find(file, Path.cwd())
    fleet = config.load(path)
    from slackwater.operations.launch import Launch  # loads Spark: a wrong file is told before

    if policy is not None:
        fleet = fleet.model_copy(update={"policy": policy, "parameters": {}})
    if master is not None:
        fleet = fleet.model_copy(
            update={"spark": fleet.spark.model_copy(update={"master": master})}
        )
    launch = Launch(fleet, path.parent, dry_run=dry_run)
    with _page(dashboard, [fleet.name or default_fleet_name()], port):
        raise typer.Exit(launch.run(console, seconds))


@starting.command()
def fleet(
    file: FleetPath = None,
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


@starting.command()
def worker(
    name: Annotated[str, typer.Argument(help="As in the section \\[workers.NAME].")],
    file: FleetPath = None,
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


@starting.command()
def controller(
    name: Annotated[str, typer.Argument(help="Of the fleet: as ConnectFleet is given it.")],
    policy: Annotated[str, typer.Option(help="Who decides.")] = "klink",
    slots: Annotated[
        int | None,
        typer.Option(min=1, help="Batches at once; default: one and a half for each core here."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, but hold nothing.")] = False,
) -> None:
    """Decide for a fleet over Spark Connect, until Ctrl-C: on the server's host, as its user.

    Clients name the socket that is printed, see docs/connect.md. Fleets of classic sessions start
    their controllers themselves.
    """
    from slackwater.common.procfs import process_cpu_s, usable_cpus
    from slackwater.core.model import default_slots
    from slackwater.engines.spark.control.service import ControllerService, ControllerSettings
    from slackwater.ipc.client import refuse_if_answered
    from slackwater.ipc.unix_socket import socket_path

    if not name or Path(name).name != name:
        raise UsageError(f"{name!r} is no name of a fleet: its socket is named after it")
    socket, stop = socket_path(name), threading.Event()
    refuse_if_answered(socket, name)
    settings = ControllerSettings(
        str(socket), policy, slots or default_slots(len(usable_cpus())), dry_run
    )
    service = ControllerService(settings, process_cpu_s)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    write_line(f"controller {name}: policy {policy}, {settings.slots} slots, socket {socket}")
    service.run(stop.is_set)
