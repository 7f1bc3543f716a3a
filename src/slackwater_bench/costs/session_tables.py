"""Tables of the micro-batch benchmark."""

from dataclasses import dataclass
from statistics import median

from rich.table import Table

from slackwater_bench.costs.session_trial import BatchCost
from slackwater_bench.tables import figures_table

PHASES = (
    "latestOffset",
    "queryPlanning",
    "getBatch",
    "walCommit",
    "addBatch",
    "commitOffsets",
    "triggerExecution",
)


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """One arm over all repeats; milliseconds are per micro-batch."""

    name: str
    repeats: int
    cpu_ms: float  # median
    cpu_ms_low: float
    cpu_ms_high: float
    batches_per_s: float  # median
    ratio: float  # of CPU to the baseline of the same repeat, median
    ratio_low: float
    ratio_high: float


def summarise(results: dict[str, list[BatchCost]], baseline: str) -> list[ArmSummary]:
    """Return medians and spread; ratios pair each run with the baseline's of its repeat."""
    reference = [run.cpu_ms for run in results[baseline]]
    summary = []
    for name, runs in results.items():
        cpu = [run.cpu_ms for run in runs]
        ratios = [mine / other for mine, other in zip(cpu, reference, strict=True)]
        summary.append(
            ArmSummary(
                name=name,
                repeats=len(runs),
                cpu_ms=median(cpu),
                cpu_ms_low=min(cpu),
                cpu_ms_high=max(cpu),
                batches_per_s=median(run.batches_per_s for run in runs),
                ratio=median(ratios),
                ratio_low=min(ratios),
                ratio_high=max(ratios),
            )
        )
    return summary


def cost_table(summary: list[ArmSummary], rows: int, queries: int) -> Table:
    """Return the main table: what a batch costs in each arm."""
    title = f"CPU per micro-batch, {queries} queries, {rows} rows a batch"
    table = figures_table(title, "arm, CPU ms, low…high, batches/s, ratio to first, low…high")
    for row in summary:
        table.add_row(
            row.name,
            f"{row.cpu_ms:.0f}",
            f"{row.cpu_ms_low:.0f}…{row.cpu_ms_high:.0f}",
            f"{row.batches_per_s:.1f}",
            f"{row.ratio:.2f}",
            f"{row.ratio_low:.2f}…{row.ratio_high:.2f}",
        )
    return table


def phases_table(results: dict[str, list[BatchCost]]) -> Table:
    """Return wall time of a batch by phase, as Spark reports it."""
    table = figures_table("Wall ms per micro-batch by phase", "arm", *PHASES)
    for name, runs in results.items():
        cells = (median(run.phases_ms.get(phase, 0.0) for run in runs) for phase in PHASES)
        table.add_row(name, *(f"{cell:.0f}" for cell in cells))
    return table


def threads_table(results: dict[str, list[BatchCost]]) -> Table:
    """Return CPU of a batch by group of threads; forked processes have a column of their own."""
    every_run = [run for runs in results.values() for run in runs]
    groups = sorted({group for run in every_run for group in run.threads_ms})
    table = figures_table("CPU ms per micro-batch by thread", "arm, forked processes", *groups)
    for name, runs in results.items():
        forked = median(run.forked_ms for run in runs)
        cells = (median(run.threads_ms.get(group, 0.0) for run in runs) for group in groups)
        table.add_row(name, f"{forked:.0f}", *(f"{cell:.0f}" for cell in cells))
    return table
