"""Measure: policies against each other; estimators; what the gates cost."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from typer.core import TyperGroup

from slackwater.cli.terminal import (
    JsonFile,
    ReportFolder,
    console,
    make_folder,
    texts,
    with_status,
    write_json,
    write_line,
)
from slackwater.common.plugins import load_object
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.report.result import BenchResult
from slackwater_bench import kafka_broker
from slackwater_bench.aion.comparison import Compared
from slackwater_bench.aion.trial import AionTrial
from slackwater_bench.comparison import refuse_bad_windows, refuse_failures
from slackwater_bench.journal import Journal
from slackwater_bench.klink.backlog import BacklogTrial
from slackwater_bench.klink.backlog import Compared as BacklogCompared
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.lachesis.settings import LachesisSettings
from slackwater_bench.mixed.trial import MixedTrial
from slackwater_bench.options import Kept, Resumed, option, with_options
from slackwater_bench.quality.overload import Overload
from slackwater_bench.quality.ramp import Ramp
from slackwater_bench.quality.rate import RateTrial
from slackwater_bench.quality.scenarios import ScenarioSettings
from slackwater_bench.quality.split import SplitTrial
from slackwater_bench.versus.command import versus


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which policies are compared, and how often."""

    policies: tuple[str, ...] = option(
        ("spark", "spark-fair", "spark-trigger", "klink"),
        "Comma-separated: policies, also as name:key=value, and Spark itself. spark: as it comes, "
        "spark-tuned: our session, spark-fair: with FAIR pools, spark-trigger: with the best fixed "
        "interval (spark-trigger:1.5: with this one).",
    )
    counts: tuple[int, ...] = option(
        (8,), "How many; or several counts: 4,8,12.", flags="--queries"
    )
    repeat: int = option(1, "Rounds; arms alternate.", least=1)


class _Benchmarks(TyperGroup):
    """Takes a workload of a user's own, as module:Class, where a command is expected."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if ":" not in cmd_name:
            return super().get_command(ctx, cmd_name)
        own = typer.Typer()
        own.command(cmd_name)(_comparison(cmd_name))
        return typer.main.get_command(own)


bench = typer.Typer(cls=_Benchmarks, help=__doc__)


def _comparison(workload: str) -> Callable[..., None]:
    """Return the command that compares policies on a workload; all have the same options."""
    first = "policies counts seconds warmup_s repeat"
    return with_options(_compare, first, workload=workload, policy="")


def _compare(
    trial: PolicyTrial,
    asked: Asked,
    json_file: Kept = None,
    resume: Resumed = False,
    report: ReportFolder = None,
) -> None:
    from slackwater_bench.klink.comparison import compare
    from slackwater_bench.klink.table import table
    from slackwater_bench.rivals import arms

    if trial.source == "kafka":
        kafka_broker.require()
    make_folder(report)
    chosen, journal = arms(asked.policies, trial), Journal(json_file, resume)
    result = with_status(lambda show: compare(chosen, asked.counts, asked.repeat, journal, show))
    _present(result, table(result), report, "slackwater.report:write_report")
    refuse_bad_windows(result["runs"], "policy", write_line)


for _workload, _help in {
    "ysb": "Yahoo Streaming Benchmark: latency of window results under each policy, checked.",
    "linear-road": "Linear Road: as ysb, with cars on expressways.",
    "nyc-taxi": "New York taxi trips: as ysb, with averages by area.",
    "catch-up": "Events that nearly all are groups of their own: what --backlog does to --heap.",
}.items():
    bench.command(_workload, help=_help)(_comparison(_workload))


@dataclass(frozen=True, kw_only=True)
class MixedArms:
    """Which policies are compared on a mixed fleet, and how often."""

    policies: tuple[str, ...] = option(
        (
            "spark",
            "spark-trigger:1",
            "spark-trigger:2",
            "spark-trigger:5",
            "spark-tuned",
            "klink",
        ),
        "Comma-separated, as for ysb; triggers run with our session.",
    )
    repeat: int = option(1, "Rounds; arms alternate.", least=1)


def mixed(
    trial: MixedTrial,
    asked: MixedArms,
    alone: Annotated[
        Path | None,
        typer.Option(help="Earlier --json of the fleet without the silent queries or the sinks."),
    ] = None,
    json_file: Kept = None,
    resume: Resumed = False,
) -> None:
    """Run a fleet of all kinds: windows, dashboards, tables, joins, files, a slow sink."""
    from slackwater_bench.mixed.comparison import bars_table, compare, table
    from slackwater_bench.rivals import arms

    if "spark-trigger" in asked.policies:
        raise UsageError("name the interval of the trigger: spark-trigger:2")
    chosen, journal = arms(asked.policies, trial), Journal(json_file, resume)
    before = None if alone is None else BenchResult.read(alone)
    result = with_status(lambda show: compare(chosen, asked.repeat, journal, show, before))
    _present(result, table(result))
    if (bars := bars_table(result)) is not None:
        console.print(bars)
    runs = result["runs"]
    refuse_failures(runs, lambda run: f"{run['policy']}, repeat {run['repeat'] + 1}", write_line)
    for run in runs:
        for query, wrong in run["mistakes"].items():
            write_line(f"wrong: {run['policy']}, {query}: {'; '.join(wrong[:3])}")
    if any(run["mistakes"] for run in runs):
        raise SlackwaterError("some results are wrong")
    if any(run["failures"] for run in runs):
        raise SlackwaterError("some queries failed")


bench.command()(with_options(mixed, "policies scale seconds warmup_s repeat", policy=""))


def aion(
    trial: AionTrial, compared: Compared, json_file: JsonFile = None, report: ReportFolder = None
) -> None:
    """Compare Aion with samplers that wait for stragglers; every approximate row is checked."""
    from slackwater_bench.aion.comparison import compare
    from slackwater_bench.aion.figures import table

    make_folder(report)
    result = with_status(lambda show: compare(trial, compared, Journal(json_file), show))
    page = "slackwater_bench.aion.report:write_aion_report"
    _present(result, table(result, trial.error), report, page, trial.error)
    refuse_failures(result["runs"], lambda run: str(run["sampler"]), write_line)


_AION_FIRST = "workloads settings samplers rates queries seconds warmup_s repeat"
bench.command("aion")(with_options(aion, _AION_FIRST, sampler=""))


bench.command()(with_options(versus, "arms counts seconds warmup_s repeat", arm="", queries=1))


@bench.command()
@with_options
def lachesis(
    settings: LachesisSettings, json_file: JsonFile = None, report: ReportFolder = None
) -> None:
    """Compare engines steered through the kernel with its default, on real Flink and Spark.

    Engines and queries are started once and go on running while the arms take turns.
    """
    from slackwater_bench.lachesis.comparison import compare
    from slackwater_bench.lachesis.figures import table

    make_folder(report)
    result = with_status(lambda show: compare(settings, Journal(json_file), show))
    page = "slackwater_bench.lachesis.report:write_lachesis_report"
    _present(result, table(result), report, page)


def backlog(trial: BacklogTrial, compared: BacklogCompared, json_file: JsonFile = None) -> None:
    """Let a query on Spark's own sources catch up with an hour of events in a small heap."""
    from slackwater_bench.klink.backlog import measure, table

    if "kafka" in compared.sources:
        kafka_broker.require()
    result = with_status(lambda show: measure(trial, compared, Journal(json_file), show))
    _present(result, table(result))


bench.command()(with_options(backlog, "policies sources", policy="", source=""))


@bench.command()
def estimators(
    epochs: Annotated[int, typer.Option(min=2, help="Windows simulated per setting.")] = 2000,
    rate: Annotated[float, typer.Option(min=0.001, help="Events/s.")] = 1000.0,
    delays: Annotated[
        str, typer.Option(help="Comma-separated network delays.")
    ] = "uniform:0:300ms,zipf:0.99:300ms",
    confidence: Annotated[
        str, typer.Option(help="Comma-separated shares that an interval is to cover.")
    ] = "0.95,0.9",
    seed: Annotated[int, typer.Option()] = 1,
    json_file: JsonFile = None,
    report: ReportFolder = None,
) -> None:
    """Measure how often estimators of the sweeping watermark are right, and how sharp. No Spark."""
    from slackwater_bench.klink.estimators import measure, table

    make_folder(report)
    result = with_status(
        lambda show: measure(epochs, rate, texts(delays), _shares(confidence), seed, show)
    )
    write_json(json_file, result)
    _present(result, table(result), report, "slackwater.report:write_report")


@bench.command()
def decide(
    policy: Annotated[str, typer.Option(help="A policy, or your own as module:Class.")] = "klink",
    queries: Annotated[int, typer.Option(min=1, help="All of them wait.")] = 10_000,
    repeats: Annotated[int, typer.Option(min=1)] = 50,
    json_file: JsonFile = None,
) -> None:
    """Measure how long one decision takes when many queries wait. No Spark."""
    from slackwater_bench.costs.decision import measure, table

    result = measure(policy, queries, repeats)
    write_json(json_file, result)
    _present(result, table(result))


@bench.command()
@with_options
def overload(settings: Overload, json_file: JsonFile = None, report: ReportFolder = None) -> None:
    """Give more input than the machine can take: Spark alone, fixed shed rates, Slackwater."""
    from slackwater_bench.quality.overload import measure, table

    make_folder(report)
    result = with_status(lambda show: measure(settings, Journal(json_file), show))
    _present(result, table(result), report, "slackwater_bench.quality.report:write_overload_report")


@bench.command()
@with_options
def ramp(settings: Ramp, json_file: JsonFile = None, report: ReportFolder = None) -> None:
    """Raise the rate past what the machine can take: lag, throughput, latency."""
    from slackwater_bench.quality.ramp import measure, table

    make_folder(report)
    result = with_status(lambda show: measure(settings, Journal(json_file), show))
    _present(result, table(result), report, "slackwater_bench.quality.report:write_ramp_report")


@bench.command()
@with_options
def quality(
    settings: ScenarioSettings, json_file: JsonFile = None, report: ReportFolder = None
) -> None:
    """Run applications with priorities on two workers of one core while the load changes."""
    from slackwater_bench.quality.scenarios import measure, table

    make_folder(report)
    result = with_status(lambda show: measure(settings, show))
    write_json(json_file, result)
    _present(result, table(result), report, "slackwater_bench.quality.report:write_scenario_report")
    rates = {key: value for key, value in result.items() if key.startswith("estimated_rate")}
    console.print(result["checks"], rates)


def split(
    trial: SplitTrial,
    repeat: Annotated[int, typer.Option(min=1, help="Rounds; arms alternate.")] = 1,
    json_file: JsonFile = None,
) -> None:
    """Split queries between two workers that tell each other of progress and costs, or do not."""
    from slackwater_bench.quality.split import measure, table

    result = with_status(lambda show: measure(trial, repeat, Journal(json_file), show))
    _present(result, table(result))


bench.command()(with_options(split, arm=""))


def rate(trial: RateTrial, json_file: JsonFile = None) -> None:
    """Estimate the rate of a topic on a real Kafka broker: errors, also of a query left behind."""
    from slackwater_bench.quality.rate import measure, table

    kafka_broker.require()
    result = with_status(lambda show: measure(trial, Journal(json_file), show))
    _present(result, table(result))
    refuse_failures(list(result["runs"].values()), lambda run: "a query", write_line)


bench.command()(with_options(rate, arm=""))


@bench.command("quality-cycle")
def quality_cycle(
    tasks: Annotated[int, typer.Option(min=1)] = 2000,
    workers: Annotated[int, typer.Option(min=1)] = 100,
    repeats: Annotated[int, typer.Option(min=1)] = 50,
    json_file: JsonFile = None,
) -> None:
    """Measure how long one cycle of the quality controller takes over many tasks. No Spark."""
    from slackwater_bench.costs.quality_cycle import measure, table

    result = measure(tasks, workers, repeats)
    write_json(json_file, result)
    _present(result, table(result))


@bench.command()
def gate(
    rounds: Annotated[int, typer.Option(min=1)] = 10,
    seconds: Annotated[float, typer.Option(help="Of one query in one round.")] = 4.0,
    queries: Annotated[int, typer.Option(min=1, help="Started at once to see memory.")] = 40,
    json_file: JsonFile = None,
) -> None:
    """Measure what each gate adds to a batch (time, CPU) and to a query (memory)."""
    from slackwater_bench.costs.gate import measure, table

    result = with_status(lambda show: measure(rounds, seconds, queries, show))
    write_json(json_file, result)
    _present(result, table(result))


def _present(
    result: dict[str, Any],
    table: Table,
    report: Path | None = None,
    page: str = "",
    *arguments: Any,
) -> None:
    """Print the table; have the page written where a folder is given.

    Parameters
    ----------
    page
        What writes it, as module:function; what draws plots is loaded only then.
    arguments
        Of that function, between the result and the folder.
    """
    console.print(table)
    if report is not None:
        write_line(f"report: {load_object(page)(result, *arguments, report)}")


def _shares(text: str) -> list[float]:
    """Read shares between zero and one.

    >>> _shares("0.95,0.9")
    [0.95, 0.9]
    """
    try:
        shares = [float(part) for part in texts(text)]
    except ValueError:
        shares = []
    if not shares or not all(0 < share < 1 for share in shares):
        raise UsageError(f"--confidence takes shares such as 0.95 or 0.95,0.9, not {text!r}")
    return shares
