"""The three scenarios of the Stream-Economics evaluation, on real workers of one core each.

1. Taxi Drives alone, all priorities the same; the second worker comes later.
2. Taxi Drives with different priorities; K nearest neighbours arrives later, with the lowest.
3. K nearest neighbours with two instances whose source changes its rate.

The load goes up and down in steps, as a multiple of a rate that is given.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from slackwater.core.clock import RealClock
from slackwater.core.errors import UsageError
from slackwater.core.protocols import Clock
from slackwater_bench.comparison import Show
from slackwater_bench.options import option
from slackwater_bench.quality.checks import checks, delivered
from slackwater_bench.quality.fleet_run import FleetRun, section
from slackwater_bench.quality.overload import capacity_of, rate_figures
from slackwater_bench.quality.results import FleetRow, FleetSample, QueryFile, ScenarioResult
from slackwater_bench.tables import figures_table

STARTING_S = 60.0  # that queries have to start before the traffic begins
PIPELINES = "slackwater_bench.workloads.taxi_drives"
WORKERS = ("tm1", "tm2")  # of one core each
LOADS = (0.3, 0.8, 1.6, 0.8, 0.3)  # one after another, as long each
SETTLED_S = 6.0  # three micro-batches after a change: the rate is known by what they read
# Rows per second at load 1, by what one core can label: Taxi Drives labels each row twice.
AT_ONE = {1: 1 / 3, 2: 1 / 3, 3: 1.0}


@dataclass(frozen=True, kw_only=True)
class ScenarioSettings:
    """Which scenario, and how much load."""

    scenario: int = option(1, "Of the paper's evaluation.", least=1, most=3)
    rate: float | None = option(
        None, "Rows/s of a source at load 1; default: by what a core can do.", least=1
    )
    references: int = option(50, "What a row costs.", least=1)
    step_s: float = option(60.0, "Seconds of each level of load.", least=10)


@dataclass
class Scenario:
    """Queries, and what happens when; times count from the beginning of the traffic."""

    queries: dict[str, QueryFile]
    later: dict[str, float] = field(default_factory=dict)  # queries that arrive at a time
    late_workers: dict[str, float] = field(default_factory=dict)


def scenario(
    number: int, rate: float, step_s: float, references: int, start_s: float, folder: Path
) -> Scenario:
    """Return one of the three."""
    steps = (f"{place * step_s:g}={rate * load:g}" for place, load in enumerate(LOADS))
    text = "steps:" + ",".join(steps)
    arguments = {"rate": text, "start": start_s, "seed": 7, "references": references}
    knn: QueryFile = {"query": f"{PIPELINES}:knn", "arguments": arguments, "min_accuracy": 0.1}
    if number == 1:
        drives = _taxi_drives(folder, text, references, start_s, first=1.0, second=1.0)
        return Scenario(drives, late_workers={"tm2": 1.5 * step_s})
    if number == 2:
        drives = _taxi_drives(folder, text, references, start_s, first=2.0, second=3.0)
        return Scenario({**drives, "knn": {**knn, "priority": 1.0}}, later={"knn": step_s})
    if number == 3:
        instances: dict[str, QueryFile] = {}
        for place in (0, 1):
            half = {**arguments, "seed": 7 + place}  # each reads a partition of its own
            instances[f"knn-{place}"] = {**knn, "arguments": half, "task": "knn"}
        return Scenario(instances)
    raise UsageError(f"there are scenarios 1, 2 and 3, not {number}")


def measure(settings: ScenarioSettings, show: Show, clock: Clock = RealClock()) -> ScenarioResult:
    """Run it through `slackwater fleet`, and say what was seen second by second."""
    number, rate, step_s = settings.scenario, settings.rate, settings.step_s
    references = settings.references
    if number not in AT_ONE:
        raise UsageError(f"there are scenarios 1, 2 and 3, not {number}")
    if rate is None:
        show("what a core can do")
        rate = round(AT_ONE[number] * capacity_of(references, "local[1]", cpus=[0]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start_s = float(int(clock.now() + STARTING_S))
        plan = scenario(number, rate, step_s, references, start_s, folder)
        run = FleetRun(folder, _file(plan, _at_first(plan)))
        try:
            _play(run, plan, start_s, step_s * len(LOADS), show, clock)
        finally:
            run.end()
        samples = [each for each in run.samples(start_s) if each["at_s"] >= 0]
    return {
        "scenario": number,
        "rate": rate,
        "step_s": step_s,
        "references": references,
        "queries": plan.queries,
        "samples": samples,
        "checks": checks(plan.queries, samples),
        "estimated_rate": rate_figures(list(_rates(plan, rate, step_s, samples))),
        "estimated_rate_settled": rate_figures(
            list(_rates(plan, rate, step_s, samples, settled_s=SETTLED_S))
        ),
    }


def _rates(
    plan: Scenario,
    rate: float,
    step_s: float,
    samples: list[FleetSample],
    settled_s: float = 0.0,
) -> Iterator[tuple[float, float]]:
    """Yield estimated and true rates of the queries that read from outside.

    Parameters
    ----------
    settled_s
        Looks sooner than this after a change of the rate do not count.
    """
    for sample in samples:
        if sample["at_s"] % step_s < settled_s:
            continue
        load = LOADS[min(int(sample["at_s"] / step_s), len(LOADS) - 1)]
        for row in sample["queries"]:
            reads = plan.queries.get(row["query"], {}).get("reads")
            if row["rate"] is not None and row["phase"] == "running" and not reads:
                yield row["rate"], rate * load


def _play(
    run: FleetRun, plan: Scenario, start_s: float, seconds: float, show: Show, clock: Clock
) -> None:
    due = [(at_s, "query", name) for name, at_s in plan.later.items()]
    due += [(at_s, "worker", name) for name, at_s in plan.late_workers.items()]
    present = _at_first(plan)
    while (now_s := clock.now()) < start_s + seconds:
        for event in [each for each in due if now_s >= start_s + each[0]]:
            due.remove(event)
            _, kind, name = event
            show(f"{now_s - start_s:.0f} of {seconds:.0f} s: {kind} {name} comes")
            if kind == "worker":
                run.command("worker", name)
            else:
                present.append(name)
                run.write(_file(plan, present))
        run.check()
        clock.sleep(1.0)


def _at_first(plan: Scenario) -> list[str]:
    return [name for name in plan.queries if name not in plan.later]


def _file(plan: Scenario, names: list[str]) -> str:
    """Write the fleet file; micro-batches may be two seconds apart: five queries share a core."""
    parts = ["name = 'scenario'\npolicy = 'fcfs'\n"]
    parts.append(section("quality", {"patience": 3, "batch_every": 2.0}))
    for place, worker in enumerate(WORKERS):
        values = {"cpus": [place], "remote": worker in plan.late_workers}
        parts.append(section(f"workers.{worker}", values))
    parts += [section(f"queries.{name}", plan.queries[name]) for name in names]
    return "".join(parts)


def table(result: ScenarioResult) -> Table:
    title = f"scenario {result['scenario']}, {result['rate']:g} rows/s at 1"
    names = [row["query"] for row in result["samples"][-1]["queries"]] if result["samples"] else []
    grid = figures_table(title, "seconds", *names, names=0)
    for sample in result["samples"][::15]:
        if sample["at_s"] < 0:
            continue
        rows = {row["query"]: row for row in sample["queries"]}
        cells = (_cell(name, result["queries"], rows) for name in names)
        grid.add_row(f"{sample['at_s']:.0f}", *cells)
    return grid


def _cell(name: str, queries: dict[str, QueryFile], rows: dict[str, FleetRow]) -> str:
    """Say where it is, and the accuracy that was decided and that was measured."""
    row = rows.get(name)
    if row is None:
        return ""
    accuracy = delivered(name, queries, rows)
    if accuracy is None or row["desired"] is None:
        return str(row["phase"] if row["phase"] != "running" else row["worker"])
    return f"{row['worker']} {row['desired']:.0%} / {accuracy:.0%}"


def _taxi_drives(
    folder: Path, rate: str, references: int, start_s: float, first: float, second: float
) -> dict[str, QueryFile]:
    logs = [str(folder / f"log{number}") for number in (1, 2)]
    found: dict[str, QueryFile] = {}
    for number, log in enumerate(logs, start=1):
        found[f"src{number}"] = {
            "query": f"{PIPELINES}:source",
            "arguments": {"folder": log, "rate": rate, "start": start_s, "seed": number},
            "priority": max(first, second),
            "min_accuracy": 0.6,
        }
    reads = ["src1", "src2"]
    found["snk1"] = {
        "query": f"{PIPELINES}:sink",
        "arguments": {"folders": logs, "references": references},
        "priority": first,
        "min_accuracy": 0.4,
        "reads": reads,
    }
    for place in (0, 1):
        found[f"snk2-{place}"] = {
            "query": f"{PIPELINES}:sink",
            "arguments": {"folders": logs, "number": place, "of": 2, "references": references},
            "task": "snk2",
            "priority": second,
            "min_accuracy": 0.6,
            "reads": reads,
        }
    return found
