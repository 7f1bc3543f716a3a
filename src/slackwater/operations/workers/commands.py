"""What `slackwater fleet` and `slackwater worker` do."""

import json
import signal
import threading
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from slackwater.core.clock import RealClock
from slackwater.operations.fleet_file import FleetFile
from slackwater.operations.workers.supervisor import QueryRow, Supervisor
from slackwater.operations.workers.worker import Worker

LINE_PERIOD_S = 10.0  # between two status lines where the output is not a terminal


def supervise(
    file: FleetFile, path: Path, console: Console, seconds: float | None, watch: Path | None = None
) -> None:
    """Run a supervisor until a signal, or for so long."""
    supervisor = Supervisor(file, path)
    _on_signals(supervisor)
    if seconds is not None:
        timer = threading.Timer(seconds, supervisor.stop)
        timer.daemon = True
        timer.start()
    if watch is not None:
        threading.Thread(target=_write, args=(supervisor, watch), daemon=True).start()
    shown = threading.Thread(target=_show, args=(supervisor, console), daemon=True)
    shown.start()
    try:
        supervisor.run()
    finally:
        supervisor.close()
        console.print(table(supervisor))


def work(file: FleetFile, path: Path, name: str, connect_to: str | None) -> None:
    """Run a worker until the supervisor ends it, or a signal."""
    worker = Worker(file, path, name, connect_to)
    worker.run(on_open=lambda: _on_signals(worker))


def table(supervisor: Supervisor) -> Table:
    """Make a table of queries, where they are, and their accuracies."""
    names = ", ".join(sorted(supervisor.placement.workers)) or "none yet"
    grid = Table(title=f"fleet {supervisor.name}, workers: {names}", title_justify="left")
    columns = ("query", "phase", "worker", "priority", "moves", "desired", "current", "delivered")
    for column in (*columns, "error"):
        grid.add_column(column, overflow="fold")
    for row in supervisor.rows():
        accuracy = row.accuracy or {}
        grid.add_row(
            row.query,
            row.phase,
            row.worker or "",
            f"{row.priority:g}",
            str(row.moves or ""),
            *(_percent(accuracy.get(name)) for name in ("desired", "current", "delivered")),
            row.error or "",
        )
    return grid


def _show(supervisor: Supervisor, console: Console) -> None:
    if console.is_terminal:
        with Live(table(supervisor), console=console, refresh_per_second=2) as live:
            while not supervisor.wait(0.5):
                live.update(table(supervisor))
        return
    period_s = 0.0  # the first at once
    while not supervisor.wait(period_s):
        words = ", ".join(map(_words, supervisor.rows()))
        console.print(
            f"{datetime.fromtimestamp(RealClock().now()):%H:%M:%S} {words}", highlight=False
        )
        period_s = LINE_PERIOD_S


def _words(row: QueryRow) -> str:
    """Describe a query in a line.

    It says where the query runs, and at which accuracy if it is shed.
    """
    where = f" on {row.worker}" if row.worker else ""
    desired = (row.accuracy or {}).get("desired")
    shed = f" at {_percent(desired)}" if desired is not None and desired < 1 else ""
    return f"{row.query} {row.phase}{where}{shed}"


def _write(supervisor: Supervisor, path: Path) -> None:
    """Write a line of JSON a second."""
    with path.open("a") as file:
        while not supervisor.closing:
            file.write(json.dumps(supervisor.status()) + "\n")
            file.flush()
            supervisor.wait(1.0)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _on_signals(stopped: Any) -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        stopped.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
