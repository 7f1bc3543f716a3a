"""What a micro-batch costs, with each setting of the session profile and without.

``python -m slackwater_bench.batch`` runs the same queries in a fresh JVM for each arm: stock Spark,
each setting alone, all settings, and all but each. Arms take turns over the repeats, so that a
machine that gets busier or quieter meets all of them.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from slackwater.cli.terminal import JsonFile, console, write_json
from slackwater.core.errors import EngineError, SlackwaterError, UsageError
from slackwater.engines.spark.session.profile import SETTINGS, settings_of
from slackwater_bench.arm import ArmResult, ArmSpec
from slackwater_bench.batch_report import cost_table, phases_table, summarise, threads_table

STOCK, ALL = "stock", "all"
KINDS = (STOCK, "alone", ALL, "without", "large")
ARM_LIMIT_S = 900.0


def plan_arms(names: list[str], kinds: Iterable[str] = KINDS) -> list[tuple[str, tuple[str, ...]]]:
    """Arms as pairs of name and settings.

    >>> plan_arms(["a", "b"], ["stock", "alone", "all"])
    [('stock', ()), ('a', ('a',)), ('b', ('b',)), ('all', ('a', 'b'))]
    >>> plan_arms(["a", "b"], ["without"])
    [('-a', ('b',)), ('-b', ('a',))]
    """
    every = tuple(names)
    large = {setting.name for setting in settings_of("large")}
    arms: dict[str, list[tuple[str, tuple[str, ...]]]] = {
        STOCK: [(STOCK, ())],
        "alone": [(name, (name,)) for name in names],
        ALL: [(ALL, every)],
        "without": [(f"-{name}", tuple(n for n in names if n != name)) for name in names],
        "large": [("large", tuple(name for name in names if name in large))],
    }
    return [arm for kind in kinds for arm in arms[kind]]


def run_in_subprocess(spec: ArmSpec, report: Callable[[str], None]) -> ArmResult:
    """Run one arm in its own process, so with its own JVM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "slackwater_bench.arm"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(asdict(spec)))
    process.stdin.close()
    errors: list[str] = []
    drain = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
    drain.start()
    limit = threading.Timer(ARM_LIMIT_S, process.kill)
    limit.start()
    try:
        result = _follow(process.stdout, report)
    finally:
        limit.cancel()
        process.wait()
        drain.join(timeout=5)
    if result is None:
        said = [line.strip() for line in errors if line.strip()]
        reason = said[-1] if said else "no reason given"
        raise EngineError(f"arm {spec.name!r} ended without a result: {reason}")
    return result


def _follow(lines: Iterable[str], report: Callable[[str], None]) -> ArmResult | None:
    for line in lines:
        start = line.find("{")  # a console progress bar may precede it
        try:
            message = json.loads(line[start:]) if start >= 0 else {}
        except json.JSONDecodeError:
            continue
        if "progress" in message:
            report(message["progress"])
        elif "result" in message:
            return ArmResult(**message["result"])
    return None


def run_arms(specs: list[ArmSpec], repeats: int, console: Console) -> dict[str, list[ArmResult]]:
    """Every arm ``repeats`` times, in turns, each second turn backwards."""
    results: dict[str, list[ArmResult]] = {spec.name: [] for spec in specs}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("arms", total=repeats * len(specs))
        for repeat in range(repeats):
            for spec in specs if repeat % 2 == 0 else reversed(specs):

                def report(state: str, name: str = spec.name) -> None:
                    progress.update(task, description=f"{name}: {state}")

                result = run_in_subprocess(spec, report)
                results[spec.name].append(result)
                progress.console.print(
                    f"{spec.name}: {result.cpu_ms:.0f} ms CPU a batch,"
                    f" {result.batches_per_s:.1f} batches/s",
                    highlight=False,
                )
                progress.advance(task)
    return results


def _chosen(settings: str, arms: str) -> tuple[list[str], list[str]]:
    known = [setting.name for setting in SETTINGS]
    names = [name for name in settings.split(",") if name] or known
    kinds = [kind for kind in arms.split(",") if kind]
    for what, given, allowed in (("setting", names, known), ("arm", kinds, list(KINDS))):
        if unknown := [name for name in given if name not in allowed]:
            raise UsageError(f"unknown {what} {unknown[0]!r}: use {', '.join(allowed)}")
    return names, kinds


def bench(
    settings: Annotated[str, typer.Option(help="Settings to try, by comma; all if empty.")] = "",
    arms: Annotated[str, typer.Option(help="Kinds of arms, by comma.")] = "stock,alone,all,without",
    repeats: Annotated[int, typer.Option(min=1)] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="Measured time of an arm.")] = 15.0,
    queries: Annotated[int, typer.Option(min=1, help="Concurrent queries.")] = 4,
    rows: Annotated[int, typer.Option(min=1, help="Rows of a micro-batch.")] = 100,
    warmup: Annotated[int, typer.Option(min=1, help="Batches per query not measured.")] = 40,
    phases: Annotated[bool, typer.Option(help="Also show where the time goes.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Measure CPU per micro-batch and batches per second for each setting of the profile."""
    names, kinds = _chosen(settings, arms)
    specs = [
        ArmSpec(name, chosen, queries, seconds, warmup, rows)
        for name, chosen in plan_arms(names, kinds)
    ]
    results = run_arms(specs, repeats, Console(stderr=True))
    summary = summarise(results, baseline=STOCK if STOCK in results else specs[0].name)
    console.print(cost_table(summary, rows=rows, queries=queries))
    if phases:
        console.print(phases_table(results), threads_table(results))
    if json_file is not None:
        document = {
            "options": {"queries": queries, "rows": rows, "seconds": seconds, "warmup": warmup},
            "summary": [asdict(row) for row in summary],
            "runs": {name: [asdict(run) for run in runs] for name, runs in results.items()},
        }
        write_json(json_file, document)


def main() -> None:
    """Command line."""
    app = typer.Typer(add_completion=False)
    app.command()(bench)
    try:
        app(standalone_mode=True)
    except SlackwaterError as error:
        print(f"slackwater: {error}", file=sys.stderr)
        sys.exit(error.exit_status)


if __name__ == "__main__":
    main()
