"""The command line of the simulator: ``slackwater simulate``."""

import os
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from slackwater.core.errors import UsageError
from slackwater.simulate import experiments
from slackwater.simulate.experiment import Experiment, Options
from slackwater.terminal import (
    JsonFile,
    ReportFolder,
    console,
    counts,
    make_folder,
    texts,
    with_status,
    write_json,
)

simulate = typer.Typer(
    help="The papers' experiments at the papers' scale, in virtual time. No Spark is needed, "
    "and the same policies run as on Spark."
)


def _command(experiment: Experiment) -> Callable[..., None]:
    def command(
        workloads: Annotated[
            str | None, typer.Option(help="Of ysb, linear-road, nyc-taxi; comma-separated.")
        ] = None,
        policies: Annotated[
            str | None, typer.Option(help="Comma-separated; `default` is the engine's own threads.")
        ] = None,
        queries: Annotated[str | None, typer.Option(help="Counts, such as 20,40,80.")] = None,
        delays: Annotated[
            str | None, typer.Option(help="Such as uniform:0:300ms,zipf:0.99:300ms.")
        ] = None,
        seconds: Annotated[
            float | None, typer.Option(min=5, help="Virtual time of a run; published: 1200.")
        ] = None,
        repeat: Annotated[int, typer.Option(min=1, help="Runs of each, with other seeds.")] = 1,
        cores: Annotated[int, typer.Option(min=1, help="Of each node.")] = 24,
        cold: Annotated[
            bool, typer.Option("--cold/--warm", help="Start with code that is not compiled yet.")
        ] = True,
        seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 1,
        json_file: JsonFile = None,
        report: ReportFolder = None,
    ) -> None:
        options = Options(
            workloads=texts(workloads) if workloads else None,
            policies=texts(policies) if policies else None,
            queries=counts(queries) if queries else None,
            delays=texts(delays) if delays else None,
            seconds=seconds,
            repeat=repeat,
            cores=cores,
            cold=cold,
            seed=seed,
        )
        _check(options, experiment)
        make_folder(report)
        result = with_status(lambda show: experiment.run(options, show))
        result = described(experiment, options) | result
        console.print(rows_table(result))
        write_json(json_file, result)
        if report is not None:
            from slackwater.bench.report.panels import write_panels

            console.print(f"report: {write_panels(result, report)}", highlight=False, markup=False)

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
    from slackwater.simulate import calibrate as model

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


def described(experiment: Experiment, options: Options) -> dict[str, Any]:
    """The head of a result."""
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "about": experiment.about,
        "columns": experiment.columns.split(),
        "settings": asdict(options),
    }


def rows_table(result: dict[str, Any]) -> Table:
    """The rows of an experiment for people."""
    grid = Table(title=str(result["title"]), title_justify="left")
    for column in result["columns"]:
        grid.add_column(_heading(column), justify="right")
    for row in result["rows"]:
        grid.add_row(*(_cell(column, row[column]) for column in result["columns"]))
    return grid


def _heading(column: str) -> str:
    """
    >>> _heading("memory_bytes"), _heading("p99_s"), _heading("events_per_s")
    ('memory GB', 'p99 s', 'M events/s')
    """
    known = {"memory_bytes": "memory GB", "events_per_s": "M events/s", "collecting": "GC %"}
    if column in known:
        return known[column]
    return f"{column[:-2]} s" if column.endswith("_s") else column.replace("_", " ")


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "-"
    scale = {"memory_bytes": 1e-9, "events_per_s": 1e-6, "collecting": 100.0}.get(column, 1.0)
    if isinstance(value, float):
        return f"{value * scale:.2f}" if abs(value * scale) < 1000 else f"{value * scale:.0f}"
    return str(value)


def _check(options: Options, experiment: Experiment) -> None:
    """What is wrong shows at once, not after minutes."""
    usual = Options()
    for field in fields(Options):
        changed = getattr(options, field.name) != getattr(usual, field.name)
        if changed and field.name not in experiment.uses.split():
            raise UsageError(f"{experiment.name} does not take --{field.name}")
    from slackwater import policies
    from slackwater.simulate.fleets import SHAPES
    from slackwater.simulate.trial import DEFAULT
    from slackwater.traffic import parse_delays

    for workload in options.workloads or ():
        if workload not in SHAPES:
            raise UsageError(f"unknown workload {workload!r}; known: {', '.join(SHAPES)}")
    for policy in options.policies or ():
        if policy != DEFAULT:
            policies.load(policy)
    for delays in options.delays or ():
        parse_delays(delays)
