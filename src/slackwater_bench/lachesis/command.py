"""``slackwater bench lachesis``."""

import json
from typing import Annotated, Any

import typer

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
from slackwater.core.errors import UsageError


def lachesis(
    engine: Annotated[str, typer.Option(help="flink, spark or both.")] = "flink",
    workload: Annotated[str, typer.Option(help="synthetic, etl, linear-road.")] = "synthetic",
    policies: Annotated[
        str, typer.Option(help="Comma-separated; os is the kernel's default.")
    ] = "os,queue-size,fcfs,highest-rate",
    queries: Annotated[int, typer.Option(min=1, help="Of each engine.")] = 6,
    rate: Annotated[float, typer.Option(min=0.001, help="Rows/s of each query.")] = 500.0,
    skew: Annotated[float, typer.Option(min=0, help="The n-th has rate ÷ n to this power.")] = 0.0,
    work: Annotated[int, typer.Option(min=1, help="Mean cost of synthetic operators.")] = 400,
    blocking: Annotated[bool, typer.Option(help="Some operators block now and then.")] = False,
    translator: Annotated[str, typer.Option(help="nice, cpu-shares, shares-nice, …")] = "nice",
    option: Annotated[
        list[str] | None, typer.Option(help="Of the translator, key=value: best=-10.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Of priorities: linear, log, ratio; default: the policy's.")
    ] = None,
    period: Annotated[float, typer.Option(min=0.01, help="Seconds between decisions.")] = 1.0,
    slice_s: Annotated[float, typer.Option("--slice", help="Seconds of an arm in a round.")] = 20.0,
    settle: Annotated[float, typer.Option(help="Of these, until it counts.")] = 6.0,
    rounds: Annotated[int, typer.Option(min=1, help="Arms take turns in each.")] = 3,
    warmup: Annotated[float, typer.Option(min=0, help="Before the first round.")] = 15.0,
    nodes: Annotated[
        int, typer.Option(min=1, max=2, help="2: a CPU, a network and a middleware for each.")
    ] = 1,
    apart: Annotated[
        bool, typer.Option(help="Every query of Spark in an application of its own.")
    ] = False,
    flink_conf: Annotated[
        list[str] | None, typer.Option(help="Of Flink, key=value; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option()] = 1,
    json_file: JsonFile = None,
    report: ReportFolder = None,
) -> None:
    """Steer engines through the kernel and compare with its default, on real Flink and Spark.

    Engines and queries are started once and go on running while the arms take turns.
    """
    from slackwater_bench.lachesis.comparison import compare
    from slackwater_bench.lachesis.figures import table
    from slackwater_bench.lachesis.settings import LachesisSettings

    make_folder(report)
    settings = LachesisSettings(
        engine=engine,
        workload=workload,
        arms=tuple(texts(policies)),
        queries=queries,
        rate=rate,
        skew=skew,
        work=work,
        blocking=blocking,
        translator=translator,
        translator_parameters=_options(option or []),
        flink_conf={key: str(value) for key, value in _options(flink_conf or []).items()},
        nodes=nodes,
        apart=apart,
        scale=scale,
        period_s=period,
        slice_s=slice_s,
        settle_s=settle,
        rounds=rounds,
        warmup_s=warmup,
        seed=seed,
    )
    result = with_status(
        lambda show: compare(settings, show, lambda found: write_json(json_file, found))
    )
    console.print(table(result))
    if report is not None:
        from slackwater_bench.lachesis.report import write_lachesis_report

        page = write_lachesis_report(result, report)
        write_line(f"report: {page}")


def _options(texts: list[str]) -> dict[str, Any]:
    """Parameters such as ``best=-10``.

    >>> _options(["best=-10", "by=query"])
    {'best': -10, 'by': 'query'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError(f"{text!r} is not of the form key=value")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found
