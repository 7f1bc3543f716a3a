"""The command that predicts a fleet's latencies."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.terminal import (
    FleetPath,
    JsonFile,
    console,
    with_status,
    write_json,
    write_line,
)
from slackwater.core.errors import UsageError

if TYPE_CHECKING:
    from slackwater.engines.simulator.prediction import Calibration
    from slackwater.operations.fleet_file import FleetFile
    from slackwater.operations.planning import Planner

planning = typer.Typer()


@planning.command()
def plan(
    file: FleetPath = None,
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
    from slackwater.operations import fleet_file as config
    from slackwater.operations import planning as model

    path = config.find(file, Path.cwd())
    fleet = config.load(path)
    if policy:
        fleet = fleet.model_copy(update={"policy": policy, "parameters": {}})
    policies.load(fleet.policy, **fleet.parameters)
    known = MEASURED if calibration is None else load_calibration(calibration)
    if driver_cores is not None and not known.costs.driver:
        raise UsageError("--driver-cores needs a --calibration that knows the driver's share")
    for name, section in fleet.queries.items():
        model.trigger_s(name, section.interval)  # a wrong one is told before Spark is started
    if calibration is None:
        write_line("no --calibration: costs are those of YSB queries on a two-core machine")
    planner = _planner(fleet, path.parent, rate, known, driver_cores)
    answer = with_status(lambda show: model.plan(planner, cores or os.cpu_count() or 1, p99, show))
    console.print(model.table(answer))
    for sentence in model.sentences(answer):
        console.print(sentence, highlight=False)
    write_json(json_file, answer)


def _planner(
    fleet: "FleetFile",
    folder: Path,
    usual_rate: float,
    calibration: "Calibration",
    driver_cores: float | None,
) -> "Planner":
    """Start Spark to look at the queries, and say what the model does not know of them."""
    from slackwater.engines.spark.queries.status import two_batches
    from slackwater.operations import planning as model
    from slackwater.operations.launch import Launch

    found = Launch(fleet, folder).outlines()
    for line in model.not_planned(fleet, [n for n, one in found.items() if one.own_writer]):
        console.print(line, highlight=False)
    for line in two_batches({name: one.why_two_batches for name, one in found.items()}):
        console.print(line, highlight=False)
    queries = [model.planned(fleet, name, one, usual_rate) for name, one in found.items()]
    return model.planner_of_file(fleet, queries, calibration, driver_cores)
