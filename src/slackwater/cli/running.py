"""Commands about fleets that run, or did: ``slackwater COMMAND``."""

import signal
import threading
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer

from slackwater.cli.terminal import (
    DASHBOARD_PORT,
    JsonFile,
    Port,
    ReportFolder,
    console,
    make_folder,
    texts,
    with_status,
    write_json,
    write_line,
)
from slackwater.common.listing import unknown_query
from slackwater.core.controller import REMEMBERED
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.ipc.client import ask
from slackwater.ipc.questions import AskDecisions, Control, Controlled, Decisions, Question
from slackwater.ipc.unix_socket import controller_sockets, socket_path

running = typer.Typer()

A = TypeVar("A")
FleetName = Annotated[
    str | None,
    typer.Option(
        "--fleet", help="Its name; default: that of the fleet.toml here, or the only one."
    ),
]


@running.command()
def explain(
    fleet: FleetName = None,
    last: Annotated[
        int,
        typer.Option(
            min=1,
            max=REMEMBERED,
            help="How many decisions, newest first; older ones are forgotten.",
        ),
    ] = 20,
    query: Annotated[str | None, typer.Option(help="Only this query's.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Show the last decisions of a running fleet: which query, why, and who else waited.

    A sweep reads the event that completes a window, an emit writes its result, a drain reads ahead.
    Slack is how long the query could still wait; below zero its result is on its way already.
    "watermark due" is when the watermark that completes the window was expected, seen from the
    moment of the decision, with its interval; "cost" covers all batches that the result needs.
    Below it stands why the query that is asked for waits now, and which queries take two batches
    a window, and why.
    """
    from slackwater.cli.explain import decision_table, waits_now
    from slackwater.engines.spark.queries.status import two_batches
    from slackwater.operations.dashboard.command import look

    answers = _ask_all(fleet, AskDecisions(last=last, query=query), Decisions)
    decisions = (decision for answer in answers for decision in answer)
    found = sorted(decisions, key=lambda decision: -decision.at_s)[:last]
    known = look(_sockets(fleet)).queries
    if query is not None and not found and query not in {each.name for each in known}:
        raise unknown_query(query, [each.name for each in known])
    if found:
        console.print(decision_table(found))
    else:
        console.print("no decision yet" + (f" about {query}" if query else ""))
    if query is not None:
        for line in waits_now(each for each in known if each.name == query):
            write_line(line)
    for line in two_batches({q.name: q.why_two_batches for q in known if query in (None, q.name)}):
        write_line(line)
    write_json(json_file, msgspec.to_builtins(found))


@running.command()
def status(fleet: FleetName = None, json_file: JsonFile = None) -> None:
    """Show every query of a running fleet once: its state, slack, last latency, lag, why it waits.

    "late" are rows that were dropped because they came behind the watermark, so far.
    Of a `slackwater fleet` all workers are shown.
    """
    from slackwater.operations.dashboard.command import look
    from slackwater.operations.dashboard.status import SilentFleet
    from slackwater.operations.dashboard.table import status_table

    found = look(_sockets(fleet))
    for each in found.fleets:
        if each.state == "silent" or isinstance(each, SilentFleet):
            write_line(f"fleet {each.name} does not answer: {each.error}")
            continue
        mine = [query for query in found.queries if query.fleet == each.name]
        console.print(status_table(each, mine))
    write_json(json_file, msgspec.to_builtins(found))


@running.command()
def record(
    file: Annotated[Path, typer.Argument(help="Where to: lines of JSON.")],
    fleet: FleetName = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after so long.")] = None,
) -> None:
    """Keep the decisions and metrics of a running fleet in a file, until Ctrl-C."""
    from slackwater.operations import recording

    socket, stop = _socket(fleet), threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    found = with_status(
        lambda show: recording.record(socket, file, stop.is_set, show, seconds), quiet=True
    )
    kinds = ", ".join(f"{number} of kind {kind}" for kind, number in sorted(found.items()))
    write_line(f"{file}: {kinds}")


@running.command()
def replay(
    file: Annotated[Path, typer.Argument(help="Of slackwater record.")],
    policies: Annotated[
        str, typer.Option(help="Under which it is replayed, besides its own.")
    ] = "klink,fcfs,spark",
    json_file: JsonFile = None,
    report: ReportFolder = None,
) -> None:
    """Simulate what would have come of a recorded run under other policies.

    The recorded policy is replayed too: how far its figures are from the recorded ones is how far
    the model is off. See docs/recording.md for what it knows and what it does not.
    """
    from slackwater import policies as family
    from slackwater.operations import recording
    from slackwater.operations.recording.table import replay_table
    from slackwater.report import write_report

    for name in texts(policies):
        family.load(name)
    recorded = recording.load(file)
    make_folder(report)
    result = with_status(lambda show: recording.replay(recorded, texts(policies), show))
    console.print(replay_table(result))
    write_json(json_file, result)
    if report is not None:
        write_line(f"report: {write_report(result, report)}")


@running.command()
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
    from slackwater.operations.dashboard import command

    command.serve(
        fleet or [], port, lambda url: write_line(command.invitation(url, console.is_terminal))
    )


@running.command()
def off(fleet: FleetName = None) -> None:
    """Open all gates of a running fleet: its queries go on as plain Spark."""
    _ask_all(fleet, Control(action="off"), Controlled)
    console.print("off: all gates are open")


@running.command()
def on(fleet: FleetName = None) -> None:
    """Hold the queries of a running fleet again."""
    _ask_all(fleet, Control(action="on"), Controlled)
    console.print("on: queries are held")


def _ask_all(fleet: str | None, question: Question, kind: type[A]) -> list[A]:
    """Ask the fleet, or its workers: one that is dead keeps the others from nothing."""
    answers, silent = [], []
    for socket in _sockets(fleet):
        try:
            answers.append(ask(socket, question, kind))
        except SlackwaterError as error:
            silent.append(error)
    if not answers:
        raise silent[0]
    for problem in silent:
        console.print(str(problem), highlight=False, markup=False)
    return answers


def _socket(fleet: str | None) -> Path:
    """Return the socket of the one fleet that is meant."""
    found = _sockets(fleet)
    if len(found) > 1:
        names = ", ".join(path.stem for path in found)
        raise UsageError(f"this fleet has several workers: {names}; name one with --fleet")
    return found[0]


def _sockets(fleet: str | None) -> list[Path]:
    """Find the fleet that is meant, or its workers, each of which is a fleet of its own."""
    running = controller_sockets()
    names = ", ".join(path.stem for path in running)
    if not running:
        raise UsageError("no fleet is running; start one with `slackwater run`")
    fleet = fleet or _named_here()
    if fleet is None:
        if len({path.stem.partition(".")[0] for path in running}) > 1:
            raise UsageError(f"running fleets: {names}; name one with --fleet")
        return running
    if socket_path(fleet) in running:
        return [socket_path(fleet)]
    workers = [path for path in running if path.stem.startswith(f"{fleet}.")]
    if not workers:
        raise UsageError(f"no fleet named {fleet!r} is running; these are: {names}")
    return workers


def _named_here() -> str | None:
    """Return what the fleet file of this folder calls its fleet."""
    from slackwater.operations import fleet_file as config

    try:
        return config.load(config.find(None, Path.cwd())).name
    except UsageError:
        return None
