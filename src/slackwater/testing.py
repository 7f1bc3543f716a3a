"""For people who write policies, samplers and sources: try one out, and check what each must keep.

``simulate`` runs a policy over a small fleet in virtual time and returns what happened.
``check_policy``, ``check_sampler`` and ``check_source`` raise an ``AssertionError`` that says what
was broken; ``POLICY_CHECKS`` and ``SAMPLER_CHECKS`` are their parts, for one test each::

    @pytest.mark.parametrize("check", testing.POLICY_CHECKS)
    def test_my_policy(check):
        check("mine:LongestQueue")

>>> simulate("fcfs", queries=2, seconds=4).log[:2]
(Event(at_s=0.0, query='q0', what='waiting'), Event(at_s=0.0, query='q1', what='waiting'))
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from slackwater import policies, sampling
from slackwater.core import Controller, Snapshot, UsageError, VirtualClock
from slackwater.core.entities import Operator
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.engines.simulator.query import BatchCosts, SimulatedQuery
from slackwater.policies import Policy
from slackwater.sampling import Grid, Monitor, Plan, Promise
from slackwater.sampling.delays import LEVELS
from slackwater.traffic import Traffic

if TYPE_CHECKING:  # the policies' part needs no Spark
    from pyspark.sql.datasource import DataSourceStreamReader

__all__ = [
    "POLICY_CHECKS",
    "SAMPLER_CHECKS",
    "Event",
    "Simulation",
    "check_policy",
    "check_sampler",
    "check_source",
    "simulate",
    "simulated_query",
]

START_S = 1_700_000_000.0  # any moment will do
SEED = 3  # of policies that draw

MakePolicy = str | Callable[..., Policy]  # a name, ``module:Class`` or a class
MakeReader = Callable[[], "DataSourceStreamReader"]
AddRows = Callable[[int], None]


class Event(NamedTuple):
    """What a query does from a moment on: it is waiting at its gate, running or idle."""

    at_s: float  # since the start
    query: str
    what: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of a policy in the simulator."""

    log: tuple[Event, ...]
    latencies_s: dict[str, list[float]]  # of each query's windows: result less end
    longest_wait_s: float  # of any query at its gate


def simulated_query(number: int, **options: Any) -> SimulatedQuery:
    """Make one query of a fleet: windows of 3 s, each query's at times of its own.

    Parameters
    ----------
    options
        Fields of ``SimulatedQuery``, and ``rate``: events/s.
    """
    traffic = Traffic(start_s=START_S, rate=str(options.pop("rate", 200)), seed=number)
    usual: dict[str, Any] = {"phase_s": 0.37 * number % 3, "costs": BatchCosts(poll_s=0.05)}
    return SimulatedQuery(name=f"q{number}", traffic=traffic, **(usual | options))


def simulate(
    policy: MakePolicy,
    queries: int | Sequence[SimulatedQuery] = 8,
    seconds: float = 60.0,
    *,
    slots: int = 2,
) -> Simulation:
    """Run a fleet under a policy for so many virtual seconds.

    Parameters
    ----------
    policy
        Its name, ``module:Class``, or the class itself.
    queries
        How many of :func:`simulated_query`, or the queries themselves.
    slots
        How many micro-batches may run at once; admitting more is an error.
    """
    fleet = [simulated_query(n) for n in range(queries)] if isinstance(queries, int) else queries
    clock, chosen = VirtualClock(START_S), _make(policy)
    engine = MicroBatchEngine(clock, fleet, slots=slots, gated=chosen.gated)
    controller = Controller(engine, chosen, engine, clock)
    controller.run(lambda: clock.now() >= START_S + seconds)
    latencies_s: dict[str, list[float]] = {query.name: [] for query in fleet}
    for result in engine.results:
        latencies_s[result.query].append(result.latency_s)
    log = tuple(Event(round(at_s - START_S, 6), name, what) for at_s, name, what in engine.log)
    return Simulation(log, latencies_s, engine.longest_wait_s)


def _make(policy: MakePolicy) -> Policy:
    if isinstance(policy, str):
        return policies.load(policy, seed=SEED)
    return policy(seed=SEED)


# -- policies ---------------------------------------------------------------------------------


def check_policy(policy: MakePolicy) -> None:
    """Check all that every policy must keep."""
    for check in POLICY_CHECKS:
        check(policy)


def serves_everyone_within_the_slots(policy: MakePolicy) -> None:
    """Admit each query sometimes, and never more at once than there are slots."""
    for slots in (1, 3):
        log = simulate(policy, _fleet(9, max_wait_s=60.0), 60, slots=slots).log
        admitted = {event.query for event in log if event.what == "running"}
        assert len(admitted) == 9, f"with {slots} slots only {sorted(admitted)} ever ran"


def never_starves_a_query(policy: MakePolicy) -> None:
    """Let no query wait beyond its ``max_wait``."""
    waited_s = simulate(policy, _fleet(12, max_wait_s=6.0), 120).longest_wait_s
    assert waited_s <= 6.0, f"a query waited for {waited_s:.1f} s, its maximum is 6 s"


def decides_the_same_with_the_same_seed(policy: MakePolicy) -> None:
    """Draw from ``self.seed`` alone and read no clock, so that runs can be repeated."""
    first, second = (simulate(policy, _fleet(6, max_wait_s=9.0), 20) for _ in range(2))
    differing = [pair for pair in zip(first.log, second.log, strict=False) if pair[0] != pair[1]]
    assert first.log == second.log, f"two runs differ first in {differing[:1]}"


def takes_an_empty_fleet(policy: MakePolicy) -> None:
    """Admit nobody where nobody waits."""
    assert _make(policy).decide(Snapshot(0.0, 2)).admissions == ()


def weighs_every_operator(policy: MakePolicy) -> None:
    """Give each operator a finite priority, for engines that are steered through the kernel."""
    operators = (
        Operator("source", "q", downstream=("map",), source=True),
        Operator("map", "q", downstream=("sink",)),
        Operator("sink", "q"),
        Operator("other", "p"),
    )
    made = _make(policy)
    figures = {key: {"map": 2.0, "sink": 1.0, "other": 9.0} for key in made.metrics}
    found = made.priorities(operators, figures, 5.0).of
    missing = {operator.name for operator in operators} - found.keys()
    assert not missing, f"no priority for {sorted(missing)}"
    assert all(math.isfinite(value) for value in found.values()), f"not finite: {found}"


def has_a_name(policy: MakePolicy) -> None:
    """Have the name that users write: ``name = "longest-queue"``."""
    name = _make(policy).name
    assert name, 'set name = "…" in the class'
    assert ":" not in name, f"{name!r}: a colon is for module:Class"


POLICY_CHECKS: tuple[Callable[[MakePolicy], None], ...] = (
    has_a_name,
    takes_an_empty_fleet,
    serves_everyone_within_the_slots,
    never_starves_a_query,
    decides_the_same_with_the_same_seed,
    weighs_every_operator,
)


def _fleet(count: int, max_wait_s: float) -> list[SimulatedQuery]:
    """Make a fleet of three priorities."""
    return [
        simulated_query(number, priority=1 + number % 3, max_wait_s=max_wait_s)
        for number in range(count)
    ]


# -- samplers ---------------------------------------------------------------------------------

GRID = Grid(3_000_000, 3_000_000)  # windows of 3 s, in microseconds


def check_sampler(name: str) -> None:
    """Check all that every sampler must keep; ``name`` may be ``module:Class``."""
    for check in SAMPLER_CHECKS:
        check(name)


def monitor_of(scale_s: float, room: float, cycles: int) -> Monitor:
    """Return what a sampler knows after some windows of exponential delays.

    Parameters
    ----------
    scale_s
        The mean delay.
    room
        How far the promised error is from what all rows give; less of it takes more rows.
    """
    found = Monitor()
    for _ in range(cycles):
        found.delays.add(-scale_s * np.log1p(-np.array(LEVELS)), rows=3000.0)
        found.close_window(room, rows=3000.0)
    return found


def makes_plans_that_can_be_followed(name: str) -> None:
    """Plan rates above 0 and up to 1, and a wait up to ``max_wait_s``."""
    for scale_s, room, cycles in ((0.001, 1e-7, 0), (0.24, 1.0, 5), (20.0, 500.0, 30)):
        for grid in (GRID, Grid(2_000_000, 1_000_000), Grid(5_000_000, 3_000_000, 7)):
            check_plan(name, monitor_of(scale_s, room, cycles), grid)


def check_plan(name: str, monitor: Monitor, grid: Grid) -> None:
    """Check that one plan can be followed and survives its way through a file."""
    sampler = sampling.load(name)
    plan = sampler.plan(monitor, Promise(), grid)
    cell = plan.cell
    assert 0 <= cell.wait_us <= sampler.max_wait_s * 1e6, f"cannot wait {cell.wait_us} µs"
    assert cell.rates, "no rates"
    assert all(0 < rate <= 1 for rate in cell.rates), f"no rates: {cell.rates}"
    assert all(0 < share <= 1 for share in cell.shares), f"no shares: {cell.shares}"
    assert len(cell.doubts) >= len(cell.shares), "what is corrected for is not certain"
    text = msgspec.json.encode(plan, enc_hook=lambda number: number.item())
    assert msgspec.json.decode(text, type=Plan) == plan, "JSON loses a part of the plan"


def begins_exactly(name: str) -> None:
    """Keep all rows and wait for ``first_wait_s`` while nothing is known."""
    cell = sampling.load(name, first_wait_s=1.5).plan(Monitor(), Promise(), GRID).cell
    assert cell.rates == (1.0,), f"the first windows are sampled: {cell.rates}"
    assert cell.wait_us == 1_500_000, f"the first wait is {cell.wait_us} µs instead of first_wait_s"


def keeps_more_for_a_smaller_error(name: str) -> None:
    """Keep no fewer rows and wait no less when less room is left for an error."""
    sampler = sampling.load(name)
    loose, strict = (
        sampler.plan(monitor_of(0.24, room, 5), Promise(), GRID).cell for room in (2.0, 0.05)
    )
    assert min(strict.rates) >= min(loose.rates), "fewer rows for a smaller error"
    assert strict.wait_us >= loose.wait_us, "a shorter wait for a smaller error"


def refuses_a_wait_that_cannot_be(name: str) -> None:
    """Raise a ``UsageError`` for a negative ``first_wait_s``."""
    refused = ""
    try:
        sampling.load(name, first_wait_s=-1)
    except UsageError as error:
        refused = str(error)
    assert "first_wait_s" in refused, f"first_wait_s = -1: {refused or 'not refused'}"


SAMPLER_CHECKS: tuple[Callable[[str], None], ...] = (
    makes_plans_that_can_be_followed,
    begins_exactly,
    keeps_more_for_a_smaller_error,
    refuses_a_wait_that_cannot_be,
)


# -- sources ----------------------------------------------------------------------------------

Row = tuple[Any, ...]


def check_source(make_reader: MakeReader, add_rows: AddRows) -> None:
    """Check what Spark's exactly-once results need of a streaming source. Starts no Spark.

    Parameters
    ----------
    make_reader
        Makes the reader anew, as Spark does after a restart: ``streamReader`` of the data source.
    add_rows
        Makes so many more rows arrive, or waits until they have.
    """
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

    add_rows(50)
    reader = make_reader()
    offsets = [_through_json(reader.initialOffset())]
    for _ in range(5):
        offsets.append(_through_json(reader.latestOffset(offsets[-1], ReadMaxRows(7))))
        count = len(_rows(reader, offsets[-2], offsets[-1]))
        assert count <= 7, f"a batch has {count} rows, its limit is 7"
    assert offsets[-1] != offsets[0], "50 rows have arrived and none of them is handed out"
    batches = [_rows(reader, *pair) for pair in pairwise(offsets)]
    again = make_reader()
    replayed = [_rows(again, *pair) for pair in pairwise(offsets)]
    assert batches == replayed, "a replay from the same offsets has other rows"
    apart = sorted((row for batch in batches for row in batch), key=repr)
    together = sorted(_rows(again, offsets[0], offsets[-1]), key=repr)
    assert apart == together, "small batches have other rows than one large batch"
    again.commit(offsets[1])
    end = _drain(make_reader(), offsets[-1], ReadAllAvailable())
    assert len(_rows(again, offsets[-1], end)) >= 50 - len(apart), "rows that arrived are missing"
    _check_run_once(make_reader, add_rows, end)
    again.stop()


def _check_run_once(make_reader: MakeReader, add_rows: AddRows, start: Any) -> None:
    """Check that an available-now run ends where it began to look, if it knows of such runs."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable, SupportsTriggerAvailableNow

    reader = make_reader()
    if not isinstance(reader, SupportsTriggerAvailableNow):
        return
    add_rows(5)
    reader.prepareForTriggerAvailableNow()
    known = _drain(reader, start, ReadAllAvailable())
    add_rows(5)
    later = _through_json(reader.latestOffset(known, ReadAllAvailable()))
    assert later == known, "an available-now run reads rows that came after it began"
    assert len(_rows(reader, start, known)) >= 5, "an available-now run leaves rows behind"


def _drain(reader: "DataSourceStreamReader", start: Any, limit: Any) -> Any:
    """Go on until nothing is new; a source of traffic may always have more."""
    for _ in range(10):
        end = _through_json(reader.latestOffset(start, limit))
        if end == start:
            break
        start = end
    return start


def _rows(reader: "DataSourceStreamReader", start: Any, end: Any) -> list[Row]:
    """Read a micro-batch as Spark does: planned here, read in other processes."""
    from pyspark.serializers import CloudPickleSerializer

    if start == end:
        return []
    sent = CloudPickleSerializer()  # type: ignore[no-untyped-call]
    found: list[Row] = []
    for partition in reader.partitions(start, end):
        there, mine = sent.loads(sent.dumps((reader, partition)))  # type: ignore[no-untyped-call]
        for piece in there.read(mine):
            found += _rows_of(piece)
    return found


def _rows_of(piece: Any) -> list[Row]:
    """Return the rows of an Arrow batch, or the one row that a piece is."""
    if not hasattr(piece, "to_pylist"):
        return [tuple(piece)]
    return [tuple(row.values()) for row in piece.to_pylist()]


def _through_json(offset: Any) -> Any:
    """Take an offset through the checkpoint, which keeps it as JSON."""
    assert isinstance(offset, dict), f"an offset is a dict, not {offset!r}"
    return json.loads(json.dumps(offset))
