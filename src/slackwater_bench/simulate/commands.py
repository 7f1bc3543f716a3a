"""The papers' experiments at the papers' scale, in virtual time.

No Spark is needed, and the same policies run as on Spark.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

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
from slackwater_bench.options import Given, with_options
from slackwater_bench.simulate import experiments, figures
from slackwater_bench.simulate.experiment import Experiment
from slackwater_bench.simulate.settings import Settings

simulate = typer.Typer(help=__doc__)


def _command(experiment: Experiment) -> Callable[..., None]:
    def command(
        changes: Given[Settings], json_file: JsonFile = None, report: ReportFolder = None
    ) -> None:
        settings = experiment.settings(**changes)
        make_folder(report)
        result = with_status(lambda show: experiment.run(settings, show))
        console.print(figures.table(result))
        if why := figures.note(result):
            write_line(why)
        write_json(json_file, result)
        if report is not None:
            from slackwater.report.panels import write_panels

            shown = figures.headings(result), figures.cells(result)
            write_line(f"report: {write_panels(result, *shown, report)}")

    return with_options(command)


for _name in experiments.names():
    _experiment = experiments.load(_name)
    simulate.command(_name, help=_experiment.about)(_command(_experiment))


@simulate.command()
def calibrate(
    files: Annotated[
        list[Path], typer.Argument(help="Of slackwater bench --json, on the machine to model.")
    ],
    held_out: Annotated[
        list[Path] | None,
        typer.Option(help="Predict these runs instead of the repeats after the first."),
    ] = None,
    profile: Annotated[str, typer.Option(help="Session profile of the runs to fit.")] = "tuned",
    cores: Annotated[
        int | None, typer.Option(min=1, help="Of that machine; default: this one's.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Fit the model of micro-batches to measured runs; check it on runs not used for that.

    Without --held-out the first repeat of every arm is fitted and the others are predicted. The
    --json file is what `slackwater plan --calibration` takes.
    """
    from slackwater_bench.simulate import calibrate as model

    runs = model.read_runs(files, profile)
    if held_out:
        others = model.read_runs(held_out, profile)
    else:
        others = [run for run in runs if run["repeat"] > 0]
        runs = [run for run in runs if run["repeat"] == 0]
    found = with_status(
        lambda show: model.calibrate(runs, others, cores or os.cpu_count() or 1, show)
    )
    console.print(model.table(found))
    error = found["held_out_error"]["mean_error"]
    if error is not None:
        console.print(f"mean latency of held-out runs: {error:.0%} off on average")
    write_json(json_file, found)
