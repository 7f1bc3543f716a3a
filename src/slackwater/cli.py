"""The command line: ``slackwater COMMAND --help`` tells the rest."""

import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark import wire

app = typer.Typer(
    help="Schedules many Spark Structured Streaming queries on shared machines.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
bench = typer.Typer(help="Measure: policies against each other; what the gates cost.")
app.add_typer(bench, name="bench", no_args_is_help=True)

# Tables go to files and pipes in full width.
console = Console(width=None if sys.stdout.isatty() else 180)

JsonFile = Annotated[Path | None, typer.Option("--json", help="Also write the result here.")]
FleetName = Annotated[
    str | None, typer.Option("--fleet", help="Name of the fleet; default: the only one running.")
]


@app.command()
def run(
    file: Annotated[
        Path | None, typer.Argument(help="Default: fleet.toml here or in a folder above.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Instead of the file's.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark master instead of the file's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, but hold nothing.")] = False,
    seconds: Annotated[float | None, typer.Option(help="Stop after so long.")] = None,
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
    raise typer.Exit(Launch(fleet, path.parent, dry_run=dry_run).run(console, seconds))


@app.command()
def explain(
    fleet: FleetName = None,
    last: Annotated[int, typer.Option(help="How many decisions, newest first.")] = 20,
    query: Annotated[str | None, typer.Option(help="Only this query's.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Show the last decisions of a running fleet: which query, why, and who else waited.

    "watermark due" is when the watermark that completes the window was expected, seen from the
    moment of the decision, with its interval; "cost" covers all batches that the result needs.
    """
    from slackwater.explain import decision_table

    found = wire.ask(_socket(fleet), "decisions", last=last, query=query)
    console.print(decision_table(found))
    _write_json(json_file, found)


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
    _write_json(json_file, findings)
    if not all(finding["ok"] for finding in findings):
        raise typer.Exit(1)


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


@bench.command()
def ysb(
    policies: Annotated[
        str,
        typer.Option(help="Comma-separated; spark: stock Spark, spark-tuned: our session."),
    ] = "spark,spark-tuned,fcfs,round-robin",
    queries: Annotated[int, typer.Option(min=1)] = 8,
    seconds: Annotated[float, typer.Option(help="Measured time of a trial.")] = 30.0,
    warmup: Annotated[float, typer.Option(help="Seconds before it that do not count.")] = 15.0,
    repeat: Annotated[int, typer.Option(min=1)] = 1,
    rate: Annotated[str, typer.Option(help="Events/s of each query; steps:… or burst:…")] = "1000",
    window: Annotated[float, typer.Option(help="Window length in seconds.")] = 3.0,
    delays: Annotated[str, typer.Option(help="Network delays of events.")] = "uniform:0:300ms",
    aligned: Annotated[bool, typer.Option(help="All windows end together.")] = False,
    campaigns: Annotated[int, typer.Option(min=1)] = 100,
    slots: Annotated[int | None, typer.Option(help="C; default: the cores.")] = None,
    gate: Annotated[str, typer.Option(help="auto, clock, source or none.")] = "auto",
    controller: Annotated[str, typer.Option(help="process or thread.")] = "process",
    shuffle_partitions: Annotated[int, typer.Option(min=1)] = 2,
    master: Annotated[str | None, typer.Option(help="Spark master; default local[*].")] = None,
    seed: Annotated[int, typer.Option(help="All phases, delays and events follow from it.")] = 1,
    json_file: JsonFile = None,
) -> None:
    """Yahoo Streaming Benchmark: latency of window results under each policy, results checked."""
    from slackwater.bench.compare import arms, compare, table
    from slackwater.bench.trial import Trial
    from slackwater.traffic import parse_delays, parse_rate

    parse_delays(delays)
    parse_rate(rate)
    base = Trial(
        policy="",
        queries=queries,
        rate=rate,
        delays=delays,
        window_s=window,
        seconds=seconds,
        warmup_s=warmup,
        aligned=aligned,
        campaigns=campaigns,
        shuffle_partitions=shuffle_partitions,
        slots=slots,
        gate=gate,
        controller=controller,
        master=master,
        seed=seed,
    )
    chosen = arms([name.strip() for name in policies.split(",") if name.strip()], base)
    result = _with_progress(
        len(chosen) * repeat,
        lambda tick: compare(chosen, repeat, lambda name, number: tick(f"{name}, {number + 1}")),
    )
    console.print(table(result))
    _write_json(json_file, result)
    windows = [run["windows"] for run in result["runs"]]
    if any(counts["wrong"] for counts in windows):
        raise SlackwaterError("some windows differ from the ground truth")
    if any(counts["emitted"] < counts["expected"] for counts in windows):
        raise SlackwaterError("some windows did not come before the time limit: overloaded")


@bench.command()
def gate(
    rounds: Annotated[int, typer.Option(min=1)] = 10,
    seconds: Annotated[float, typer.Option(help="Of one query in one round.")] = 4.0,
    queries: Annotated[int, typer.Option(min=1, help="Started at once to see memory.")] = 40,
    json_file: JsonFile = None,
) -> None:
    """What each gate adds to a batch (time, CPU) and to a query (memory), in one Spark."""
    from slackwater.bench.gates import KINDS, measure, table

    steps = len(KINDS) * (rounds + 2) + 1
    result = _with_progress(steps, lambda tick: measure(rounds, seconds, queries, tick))
    console.print(table(result))
    _write_json(json_file, result)


def main() -> None:
    """Entry point: every error that we understand is one line and an exit status."""
    logging.basicConfig(
        level=logging.WARNING,
        format="%(message)s",
        handlers=[RichHandler(console=Console(stderr=True), show_path=False)],
    )
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # modules of the user's are named from where they stand
    try:
        app()
    except SlackwaterError as error:
        print(f"slackwater: {error}", file=sys.stderr)
        sys.exit(error.exit_status)


def _with_progress(steps: int, work: Callable[[Callable[[str], None]], Any]) -> Any:
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=steps)
        done = 0

        def tick(what: str) -> None:
            nonlocal done
            done += 1
            progress.update(task, description=f"{done} of {steps}: {what}")
            if not console.is_terminal:
                console.print(f"{done} of {steps}: {what}", highlight=False)

        return work(tick)


def _socket(fleet: str | None) -> Path:
    if fleet is not None:
        return wire.socket_path(fleet)
    running = sorted(wire.runtime_dir().glob("*.sock"))
    if not running:
        raise UsageError("no fleet is running; start one with `slackwater run`")
    if len(running) > 1:
        names = ", ".join(path.stem for path in running)
        raise UsageError(f"running fleets: {names}; name one with --fleet")
    return running[0]


def _write_json(path: Path | None, value: Any) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=1) + "\n")


if __name__ == "__main__":
    main()
