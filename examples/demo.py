"""A fleet of YSB queries on embedded Spark: watch it for a while, then see what happened.

``python examples/demo.py [--queries 6] [--seconds 20] [--policy klink]``
"""

import argparse
import contextlib
import threading
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from slackwater.core import SlackwaterError
from slackwater.spark import Fleet, session
from slackwater_bench.klink.measurement import Measurement
from slackwater_bench.klink.trial import PolicyTrial


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--policy", default="klink")
    options = parser.parse_args()
    console = Console()
    trial = PolicyTrial(
        options.policy, queries=options.queries, seconds=options.seconds, warmup_s=10
    )

    console.print("Starting Spark …")
    spark = session("slackwater-demo", conf={"spark.sql.shuffle.partitions": "2"})
    spark.sparkContext.setLogLevel("ERROR")
    with Fleet(spark, options.policy, name="demo") as fleet:
        console.print(f"Gate: {fleet.gate_kind} ({fleet.gate_reason})")
        console.print(
            f"{trial.queries} queries, {trial.rate} events/s each, windows of "
            f"{trial.window_s:g} s. In another terminal: slackwater explain --fleet demo\n"
        )
        result, decisions = watch(console, fleet, Measurement(trial, spark, fleet))
    spark.stop()
    show(console, result, decisions)


def watch(console: Console, fleet: Fleet, measurement: Measurement) -> tuple[Any, Any]:
    """Measure on another thread, show the fleet on this one."""
    outcome: dict[str, Any] = {}
    worker = threading.Thread(target=lambda: outcome.update(measurement.result()))
    worker.start()
    decisions: list[dict[str, Any]] = []
    with Live(console=console, refresh_per_second=4) as live:
        while worker.is_alive():
            worker.join(timeout=0.5)
            status = fleet.status()
            if all(query.state != "stopped" for query in status.queries):
                live.update(status.table())
            with contextlib.suppress(SlackwaterError):  # the controller has ended
                decisions = fleet.explain(last=5) or decisions
    return outcome, decisions


def show(console: Console, result: dict[str, Any], decisions: list[dict[str, Any]]) -> None:
    table = Table("the last decisions", "why", "waited s", "also waiting", title_justify="left")
    for decision in decisions:
        waiting = ", ".join(decision["waiting"])
        table.add_row(decision["query"], decision["reason"], f"{decision['waited_s']:.2f}", waiting)
    console.print("", table)
    windows, latency = result["windows"], result["latency_s"]
    console.print(
        f"{windows['emitted']} of {windows['expected']} windows came, {windows['wrong']} differ "
        f"from the ground truth; latency from a window's end to its result: mean "
        f"{latency['mean']:.2f} s, 99th percentile {latency['p99']:.2f} s; controller "
        f"{result['controller_cpu_s']:.2f} s of {result['cpu_s']:.1f} s CPU."
    )
    console.print(
        "The JVM was cold and warms up for minutes. Compare with plain Spark (about 4 minutes): "
        ".venv/bin/slackwater bench ysb --queries 6 --policies spark,klink"
    )


if __name__ == "__main__":
    main()
