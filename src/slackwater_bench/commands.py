"""Measure: policies against each other; estimators; what the gates cost."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater_bench.lachesis.command import lachesis
from slackwater_bench.quality.command import overload, quality, quality_cycle, ramp, split

if TYPE_CHECKING:
    from slackwater_bench.trial import Trial

bench = typer.Typer(help=__doc__)


def _comparison(workload: str) -> Callable[..., None]:
    """The command that compares policies on a workload; all workloads have the same options."""

    def command(
        policies: Annotated[
            str,
            typer.Option(
                help="Comma-separated: policies, also as name:key=value, and Spark itself. spark: "
                "as it comes, spark-tuned: our session, spark-fair: with FAIR pools, spark-trigger:"
                " with the best fixed interval (spark-trigger:1.5: with this one)."
            ),
        ] = "spark,spark-fair,spark-trigger,klink",
        queries: Annotated[str, typer.Option(help="How many; or several counts: 4,8,12.")] = "8",
        seconds: Annotated[float, typer.Option(min=1, help="Measured time of a trial.")] = 30.0,
        warmup: Annotated[
            float, typer.Option(min=0, help="Seconds before it that do not count.")
        ] = 15.0,
        repeat: Annotated[int, typer.Option(min=1, help="Rounds; arms alternate.")] = 1,
        rate: Annotated[
            str, typer.Option(help="Events/s of each query; steps:… or burst:…")
        ] = "1000",
        window: Annotated[
            float | None, typer.Option(help="Window length in seconds; default: the workload's.")
        ] = None,
        slide: Annotated[
            float | None, typer.Option(help="Seconds between two starts; default likewise.")
        ] = None,
        delays: Annotated[str, typer.Option(help="Network delays of events.")] = "uniform:0:300ms",
        aligned: Annotated[bool, typer.Option(help="All windows end together.")] = False,
        campaigns: Annotated[int, typer.Option(min=1, help="Groups of a ysb result.")] = 100,
        slots: Annotated[int | None, typer.Option(help="C; default: 1.5 for each core.")] = None,
        gate: Annotated[str, typer.Option(help="auto, clock, source or none.")] = "auto",
        controller: Annotated[str, typer.Option(help="process or thread.")] = "process",
        shuffle_partitions: Annotated[
            int, typer.Option(min=1, help="Spark's, the same for all arms.")
        ] = 2,
        master: Annotated[str | None, typer.Option(help="Spark master; default local[*].")] = None,
        seed: Annotated[
            int, typer.Option(help="All phases, delays and events follow from it.")
        ] = 1,
        option: Annotated[
            list[str] | None,
            typer.Option(help="Of the workload, key=value: variant=statistics. May be repeated."),
        ] = None,
        heap: Annotated[str | None, typer.Option(help="Of Spark's driver, such as 512m.")] = None,
        backlog: Annotated[
            float, typer.Option(min=0, help="Seconds of events that wait at the start.")
        ] = 0.0,
        json_file: Annotated[
            Path | None, typer.Option("--json", help="Keep the result here, after every trial.")
        ] = None,
        resume: Annotated[
            bool, typer.Option("--resume", help="Do not repeat trials that --json holds.")
        ] = False,
        report: ReportFolder = None,
    ) -> None:
        from slackwater.traffic import parse_delays, parse_rate
        from slackwater_bench.trial import Trial
        from slackwater_bench.workload_choice import workload_options

        parse_delays(delays)
        parse_rate(rate)
        _one_of("--gate", gate, ("auto", "clock", "source", "none"))
        _one_of("--controller", controller, ("process", "thread"))
        make_folder(report)
        base = Trial(
            policy="",
            workload=workload,
            rate=rate,
            delays=delays,
            window_s=window,
            slide_s=slide,
            seconds=seconds,
            warmup_s=warmup,
            aligned=aligned,
            campaigns=campaigns,
            shuffle_partitions=shuffle_partitions,
            slots=slots,
            gate=gate,
            controller=controller,
            master=master,
            options=workload_options(workload, option or []),
            heap=heap,
            backlog_s=backlog,
            seed=seed,
        )
        _compare(base, texts(policies), counts(queries), repeat, json_file, resume, report)

    return command


for _workload, _help in {
    "ysb": "Yahoo Streaming Benchmark: latency of window results under each policy, checked.",
    "linear-road": "Linear Road: as ysb, with cars on expressways.",
    "nyc-taxi": "New York taxi trips: as ysb, with averages by area.",
    "catch-up": "Events that nearly all are groups of their own: what --backlog does to --heap.",
}.items():
    bench.command(_workload, help=_help)(_comparison(_workload))


@bench.command()
def aion(
    workloads: Annotated[
        str, typer.Option(help="Of ysb (ysb:campaigns=10), nyc-taxi, kmeans, payments; commas.")
    ] = "ysb:campaigns=10",
    settings: Annotated[
        str, typer.Option(help="CC, GG, EC, EG, or delays/gaps such as uniform:0:1s/gamma:2.")
    ] = "EG",
    samplers: Annotated[
        str, typer.Option(help="Comma-separated; k-slack is no sampling, and waits for all rows.")
    ] = "k-slack,aq-k-slack,aion-minus,aion",
    rate: Annotated[
        str, typer.Option(help="Events/s of each query; several: 5000,25000.")
    ] = "1000",
    queries: Annotated[int, typer.Option(min=1, help="At once, each with phase and seed.")] = 2,
    seconds: Annotated[float, typer.Option(min=5, help="Measured time of a trial.")] = 30.0,
    warmup: Annotated[float, typer.Option(min=0, help="Before it; samplers learn.")] = 25.0,
    repeat: Annotated[int, typer.Option(min=1, help="Rounds; arms alternate.")] = 1,
    error: Annotated[float, typer.Option(help="Promised to each result row.")] = 0.05,
    confidence: Annotated[float, typer.Option(help="Probability of that.")] = 0.95,
    window: Annotated[float | None, typer.Option(help="Seconds; default: the workload's.")] = None,
    slide: Annotated[float | None, typer.Option(help="Likewise.")] = None,
    policy: Annotated[str, typer.Option(help="That admits the batches.")] = "klink",
    seed: Annotated[int, typer.Option()] = 1,
    json_file: JsonFile = None,
    report: ReportFolder = None,
) -> None:
    """Approximate results: Aion against samplers that wait for stragglers. Every row is checked."""
    from slackwater_bench.aion.comparison import compare, plan
    from slackwater_bench.aion.figures import table
    from slackwater_bench.aion.trial import AionTrial
    from slackwater_bench.workload_choice import workload_with_options

    make_folder(report)
    base = AionTrial(
        sampler="",
        queries=queries,
        window_s=window,
        slide_s=slide,
        seconds=seconds,
        warmup_s=warmup,
        error=error,
        confidence=confidence,
        policy=policy,
        seed=seed,
    )
    chosen = [workload_with_options(text) for text in texts(workloads)]
    steps = plan(base, chosen, texts(settings), texts(rate), texts(samplers), repeat)
    result = with_status(
        lambda show: compare(steps, show, lambda found: write_json(json_file, found))
    )
    console.print(table(result, error))
    if report is not None:
        from slackwater_bench.aion.report import write_aion_report

        page = write_aion_report(result, error, report)
        write_line(f"report: {page}")
    failed = [run for run in result["runs"] if "error" in run]
    for run in failed:
        console.print(f"failed: {run['sampler']}: {run['error']}", highlight=False, markup=False)
    if failed:
        raise SlackwaterError(f"{len(failed)} of {len(result['runs'])} trials failed")


bench.command()(lachesis)


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
    """How often each estimator of the sweeping watermark is right, and how sharp. No Spark."""
    from slackwater_bench.estimators import measure, table

    make_folder(report)
    result = with_status(
        lambda show: measure(epochs, rate, texts(delays), _shares(confidence), seed, show)
    )
    console.print(table(result))
    write_json(json_file, result)
    _write_report(report, result)


@bench.command()
def decide(
    policy: Annotated[str, typer.Option(help="A policy, or your own as module:Class.")] = "klink",
    queries: Annotated[int, typer.Option(min=1, help="All of them wait.")] = 10_000,
    repeats: Annotated[int, typer.Option(min=1)] = 50,
    json_file: JsonFile = None,
) -> None:
    """How long one decision takes when many queries wait. No Spark."""
    from slackwater_bench.deciding import measure, table

    result = measure(policy, queries, repeats)
    console.print(table(result))
    write_json(json_file, result)


for _command in (overload, ramp, quality, split):
    bench.command()(_command)
bench.command("quality-cycle")(quality_cycle)


@bench.command()
def gate(
    rounds: Annotated[int, typer.Option(min=1)] = 10,
    seconds: Annotated[float, typer.Option(help="Of one query in one round.")] = 4.0,
    queries: Annotated[int, typer.Option(min=1, help="Started at once to see memory.")] = 40,
    json_file: JsonFile = None,
) -> None:
    """What each gate adds to a batch (time, CPU) and to a query (memory), in one Spark."""
    from slackwater_bench.gates import KINDS, measure, table

    steps = len(KINDS) * (rounds + 2) + 1
    done = iter(range(1, steps + 1))
    result = with_status(
        lambda show: measure(
            rounds, seconds, queries, lambda what: show(f"{next(done)} of {steps}: {what}")
        )
    )
    console.print(table(result))
    write_json(json_file, result)


def _compare(
    base: "Trial",
    names: list[str],
    sizes: list[int],
    repeat: int,
    json_file: Path | None,
    resume: bool,
    report: Path | None,
) -> None:
    from slackwater_bench.compare import Comparison
    from slackwater_bench.journal import Journal
    from slackwater_bench.rivals import arms
    from slackwater_bench.table import table

    chosen, journal = arms(names, base), Journal(json_file, resume)
    result = with_status(
        lambda show: Comparison(chosen, sizes, repeat, journal, on_step=show).run()
    )
    console.print(table(result))
    _write_report(report, result)
    failed = [run for run in result["runs"] if "error" in run]
    for run in failed:
        line = f"{run['policy']}, {run['queries']} queries, repeat {run['repeat'] + 1}"
        console.print(f"failed: {line}: {run['error']}", highlight=False, markup=False)
    if failed:
        raise SlackwaterError(f"{len(failed)} of {len(result['runs'])} trials failed")
    windows = [run["windows"] for run in result["runs"]]
    if any(counted["wrong"] for counted in windows):
        raise SlackwaterError("some windows differ from the ground truth")
    if any(counted["emitted"] < counted["expected"] for counted in windows):
        raise SlackwaterError("some windows did not come before the time limit: overloaded")


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{option} takes {', '.join(known)}, not {value!r}")


def _shares(text: str) -> list[float]:
    """Shares between zero and one.

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


def _write_report(folder: Path | None, result: dict[str, Any]) -> None:
    if folder is not None:
        from slackwater.report import write_report

        write_line(f"report: {write_report(result, folder)}")
