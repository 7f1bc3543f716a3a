"""The same small fleet twice: as plain Spark, then with Slackwater. Every result is checked.

``python examples/demo.py [--queries 6] [--seconds 20] [--port 8461]``
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from slackwater.cli.terminal import DASHBOARD_PORT
from slackwater.core.errors import SlackwaterError
from slackwater.operations.dashboard.command import DashboardProcess
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.rivals import Arm, arms
from slackwater_bench.trial import Result, run_in_process

TITLES = {"spark": "plain Spark", "klink": "with Slackwater"}
NEXT = """[bold]What next[/]
  your own fleet, from a file that runs as it is, with its live page:
    . .venv/bin/activate && slackwater init ads && cd ads
    slackwater run --dashboard
  a query that runs already:  Fleet(spark).hold(query)
  how it works, when it does not help, all figures:  make docs, README.md
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--port", type=int, default=DASHBOARD_PORT)
    options = parser.parse_args()
    if options.queries < 1 or not 6 <= options.seconds < 3600 or not 0 <= options.port < 65536:
        parser.error("--queries from 1, --seconds from 6 to 3600, --port from 0 to 65535")
    trial = PolicyTrial("", queries=options.queries, seconds=options.seconds, warmup_s=8)
    console = Console()
    console.print(
        f"{trial.queries} queries count ad clicks in windows of {trial.window_s:g} s, "
        f"{trial.rate} events/s each.\nHow long after its window does each result come: on Spark "
        "as it is,\nand with Slackwater?\n"
    )
    with DashboardProcess([], options.port) as page:
        console.print(f"Watch both runs: {page.url}\n", soft_wrap=True)
        results = [run(arm, console) for arm in arms(tuple(TITLES), trial)]
    console.print("", compared(results))
    console.print(NEXT)


def run(arm: Arm[PolicyTrial], console: Console) -> Result:
    """Run one arm in a process of its own, with a Spark of its own, behind a bar."""
    expected_s = arm.trial.expected_s
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(1) as one:
        task = progress.add_task(f"{TITLES[arm.name]:<16}", total=expected_s)
        outcome = one.submit(run_in_process, arm.trial)
        while not outcome.done():
            try:
                outcome.result(timeout=0.5)
            except TimeoutError:
                elapsed_s = progress.tasks[task].elapsed or 0.0
                progress.update(task, completed=min(elapsed_s, 0.98 * expected_s))
        progress.update(task, completed=expected_s)
    return outcome.result()


def compared(results: list[Result]) -> Table:
    table = Table("", *TITLES.values(), title="the same queries, the same machine")
    for column in table.columns[1:]:
        column.justify = "right"
    rows = {
        "a result comes after its window": lambda r: f"{r['latency_s']['mean']:.2f} s",
        "99 of 100 come within": lambda r: f"{r['latency_s']['p99']:.2f} s",
        "results that are right": right,
        "micro-batches": lambda r: str(r["batches"]),
        "CPU time": lambda r: f"{r['cpu_s']:.1f} s",
        "of it the controller's": lambda r: f"{r['controller_cpu_s']:.2f} s",
    }
    for title, figure in rows.items():
        table.add_row(title, *(figure(result) for result in results))
    return table


def right(result: dict[str, Any]) -> str:
    windows = result["windows"]
    return f"{windows['emitted'] - windows['wrong']} of {windows['expected']}"


if __name__ == "__main__":
    try:
        main()
    except SlackwaterError as error:
        raise SystemExit(f"demo: {error}") from None
