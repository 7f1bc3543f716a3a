"""How long one decision takes when many queries wait."""

import random
from typing import Any

from rich.table import Table

from slackwater import policies
from slackwater.common.subprocesses import collect_seldom
from slackwater.core.clock import Timer
from slackwater.core.model import QueryMetrics, QuerySpec, QueryState, Snapshot
from slackwater.core.windows import Deadlines, InputStream, Window
from slackwater.statistics.intervals import summary
from slackwater_bench.tables import figures_table

EPOCHS = 20  # that a policy sees before it is timed
CHANGED = 16  # queries that have something new to tell at each decision
WINDOW_S, DELAY_S, START_S = 3.0, 0.3, 1_700_000_000.0
CYCLE_S = 0.12  # where work can be interrupted


def measure(policy: str, queries: int, repeats: int, seed: int = 1) -> dict[str, Any]:
    """Time decisions, on micro-batches and where work can be interrupted after each cycle."""
    collect_seldom()  # as the controller does
    return {
        "policy": policy,
        "queries": queries,
        "milliseconds": summary(_times_ms(policy, queries, repeats, seed, None)),
        "interruptible_milliseconds": summary(_times_ms(policy, queries, repeats, seed, CYCLE_S)),
    }


def _times_ms(
    policy: str, queries: int, repeats: int, seed: int, cycle_s: float | None
) -> list[float]:
    """Time decisions over queries that all wait, each with windows at times of its own."""
    chance = random.Random(seed)
    chosen = policies.load(policy)
    specs = [_spec(number, chance.uniform(0, WINDOW_S)) for number in range(queries)]
    now_s = START_S
    states: tuple[QueryState, ...] = ()
    for epoch in range(1, EPOCHS + 1):
        now_s += WINDOW_S
        states = tuple(_state(spec, epoch, now_s, chance) for spec in specs)
        chosen.decide(Snapshot(now_s, 16, states, cycle_s=cycle_s))
    took_ms = []
    for repeat in range(repeats):
        later_s = now_s + WINDOW_S * repeat / repeats / 2
        place = repeat * CHANGED % queries
        fresh = [_state(s, EPOCHS + 1 + repeat, later_s, chance) for s in specs[place:][:CHANGED]]
        states = (*states[:place], *fresh, *states[place + len(fresh) :])
        snapshot = Snapshot(later_s, 16, states, cycle_s=cycle_s)
        timer = Timer()
        chosen.decide(snapshot)
        took_ms.append(1e3 * timer.elapsed_s)
    return took_ms


def table(result: dict[str, Any]) -> Table:
    columns = "policy, work, queries, mean ms, p50, p99, max"
    grid = figures_table("one decision with all queries at the gate", columns, names=2)
    for key, work in (
        ("milliseconds", "micro-batches"),
        ("interruptible_milliseconds", "interruptible"),
    ):
        figures = (f"{result[key][name]:.2f}" for name in ("mean", "p50", "p99", "max"))
        grid.add_row(result["policy"], work, str(result["queries"]), *figures)
    return grid


def _spec(number: int, phase_s: float) -> QuerySpec:
    window = Window("tumbling", WINDOW_S, WINDOW_S, phase_s)
    return QuerySpec(
        f"q{number}", deadlines=Deadlines((window,), (InputStream("input", "time", DELAY_S),))
    )


def _state(spec: QuerySpec, epoch: int, now_s: float, chance: random.Random) -> QueryState:
    newest_s = now_s - chance.uniform(0, 0.1)
    metrics = QueryMetrics(
        batches=epoch,
        rows=3000 * epoch,
        backlog_rows=0.0,
        arrival_rate=1000.0,
        batch_fixed_s=0.1,
        batch_per_row_s=1e-5,
        batch_empty_s=0.05,
        batch_s=0.12,
        batch_start_s=now_s,
        max_event_s=newest_s,
        watermark_s=now_s - WINDOW_S,
        next_watermark_s=newest_s - DELAY_S,
    )
    return QueryState(spec, "waiting", now_s, now_s - 1.0, epoch, metrics)
