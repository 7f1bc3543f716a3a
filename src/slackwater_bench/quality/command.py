"""The command line of the benchmarks of quality, and of workers."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from slackwater.cli.terminal import (
    JsonFile,
    ReportFolder,
    console,
    make_folder,
    with_status,
    write_json,
    write_line,
)

References = Annotated[int, typer.Option(min=1, help="What a row costs.")]
Master = Annotated[str, typer.Option(help="Spark master.")]


def overload(
    seconds: Annotated[float, typer.Option(min=20, help="Of overload.")] = 300.0,
    times: Annotated[float, typer.Option(min=0.1, help="Input by what can be processed.")] = 2.0,
    references: References = 50,
    master: Master = "local[2]",
    json_file: JsonFile = None,
    report: ReportFolder = None,
) -> None:
    """More input than the machine can take: Spark alone, fixed shed rates, and Slackwater."""
    from slackwater_bench.quality.overload import measure, table
    from slackwater_bench.quality.report import write_overload_report

    make_folder(report)
    result = with_status(lambda show: measure(seconds, times, references, master, show))
    console.print(table(result))
    _keep(result, json_file, report, write_overload_report)


def ramp(
    step: Annotated[float, typer.Option(min=5, help="Seconds of each level of load.")] = 20.0,
    references: References = 50,
    master: Master = "local[2]",
    json_file: JsonFile = None,
    report: ReportFolder = None,
) -> None:
    """A rate that rises past what the machine can take: lag, throughput, latency."""
    from slackwater_bench.quality.ramp import measure, table
    from slackwater_bench.quality.report import write_ramp_report

    make_folder(report)
    result = with_status(lambda show: measure(step, references, master, show))
    console.print(table(result))
    _keep(result, json_file, report, write_ramp_report)


def quality(
    scenario: Annotated[int, typer.Option(min=1, max=3, help="Of the paper's evaluation.")] = 1,
    rate: Annotated[
        float | None,
        typer.Option(min=1, help="Rows/s of a source at load 1; default: by what a core can do."),
    ] = None,
    references: References = 50,
    step: Annotated[float, typer.Option(min=10, help="Seconds of each level of load.")] = 60.0,
    json_file: JsonFile = None,
    report: ReportFolder = None,
) -> None:
    """Applications with priorities on two workers of one core each, while the load changes."""
    from slackwater_bench.quality.report import write_scenario_report
    from slackwater_bench.quality.scenarios import measure, table

    make_folder(report)
    result = with_status(lambda show: measure(scenario, rate, step, references, show))
    console.print(table(result))
    rates = {key: value for key, value in result.items() if key.startswith("estimated_rate")}
    console.print(result["checks"], rates)
    _keep(result, json_file, report, write_scenario_report)


def quality_cycle(
    tasks: Annotated[int, typer.Option(min=1)] = 2000,
    workers: Annotated[int, typer.Option(min=1)] = 100,
    repeats: Annotated[int, typer.Option(min=1)] = 50,
    json_file: JsonFile = None,
) -> None:
    """How long one cycle of the quality controller takes over many tasks. No Spark."""
    from slackwater_bench.quality.cycle import measure, table

    result = measure(tasks, workers, repeats)
    console.print(table(result))
    write_json(json_file, result)


def split(
    queries: Annotated[int, typer.Option(min=1, help="Each on both workers.")] = 2,
    seconds: Annotated[float, typer.Option(min=3, help="Measured time of a run.")] = 60.0,
    warmup: Annotated[float, typer.Option(min=0, help="Seconds before it.")] = 30.0,
    rate: Annotated[int, typer.Option(min=1, help="Events/s of each query.")] = 1000,
    policy: Annotated[str, typer.Option(help="Of both workers.")] = "klink",
    repeat: Annotated[int, typer.Option(min=1, help="Rounds; arms alternate.")] = 1,
    json_file: JsonFile = None,
) -> None:
    """Queries split between two workers that tell each other of progress and costs, or do not."""
    from slackwater_bench.quality.split import measure, table

    result = with_status(lambda show: measure(queries, seconds, warmup, rate, policy, repeat, show))
    console.print(table(result))
    write_json(json_file, result)


def _keep(
    result: dict[str, Any],
    json_file: Path | None,
    report: Path | None,
    write: Callable[[dict[str, Any], Path], Path],
) -> None:
    write_json(json_file, result)
    if report is not None:
        write_line(f"report: {write(result, report)}")
