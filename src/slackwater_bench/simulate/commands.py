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
    counts,
    make_folder,
    texts,
    with_status,
    write_json,
    write_line,
)
from slackwater_bench.simulate import experiments, figures
from slackwater_bench.simulate.experiment import Experiment

simulate = typer.Typer(help=__doc__)


def _command(experiment: Experiment) -> Callable[..., None]:
    def command(
        workloads: Annotated[
            str | None, typer.Option(help="Of ysb, linear-road, nyc-taxi; comma-separated.")
        ] = None,
        policies: Annotated[
            str | None, typer.Option(help="Comma-separated; `default` is the engine's own threads.")
        ] = None,
        queries: Annotated[str | None, typer.Option(help="Counts, such as 20,40,80.")] = None,
        nodes: Annotated[str | None, typer.Option(help="Counts, such as 1,8.")] = None,
        delays: Annotated[
            str | None, typer.Option(help="Such as uniform:0:300ms,zipf:0.99:300ms.")
        ] = None,
        arrivals: Annotated[
            str | None,
            typer.Option(
                help="even, or bursts:3:5s:20s: in bursts of 3 times the mean rate, 5 s long, "
                "every 20 s, on average, of each query for itself."
            ),
        ] = None,
        seconds: Annotated[
            float | None, typer.Option(min=5, help="Virtual time of a run; published: 1200.")
        ] = None,
        repeat: Annotated[
            int | None, typer.Option(min=1, help="Runs of each, with other seeds; default: 1.")
        ] = None,
        cores: Annotated[int | None, typer.Option(min=1, help="Of each node; default: 24.")] = None,
        cold: Annotated[
            bool | None,
            typer.Option("--cold/--warm", help="Start with code that is not compiled yet."),
        ] = None,
        seed: Annotated[
            int | None, typer.Option(help="The same seed gives the same result.")
        ] = None,
        json_file: JsonFile = None,
        report: ReportFolder = None,
    ) -> None:
        said = {
            "workloads": texts(workloads) if workloads else None,
            "policies": texts(policies) if policies else None,
            "queries": counts(queries) if queries else None,
            "nodes": counts(nodes, "--nodes") if nodes else None,
            "delays": texts(delays) if delays else None,
            "arrivals": arrivals,
            "seconds": seconds,
            "repeat": repeat,
            "cores": cores,
            "cold": cold,
            "seed": seed,
        }
        changes = {name: value for name, value in said.items() if value is not None}
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
            page = write_panels(result, *shown, report)
            write_line(f"report: {page}")

    return command


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
