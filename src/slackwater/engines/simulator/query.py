"""A streaming query in the simulator: what it reads, what a batch costs, and how far it is."""

from dataclasses import dataclass, replace

import numpy as np

from slackwater.core.model import QuerySpec
from slackwater.core.windows import Deadlines, InputStream
from slackwater.engines.simulator.stream import SimulatedStream
from slackwater.engines.simulator.windowed import WindowedQuery
from slackwater.metrics import Batch, BatchObserver, Coming
from slackwater.traffic import Traffic

POLL_S = 0.01  # between two looks of a query that found nothing


@dataclass(frozen=True, slots=True)
class BatchCosts:
    """What a micro-batch takes: work on a core, and time that it spends waiting."""

    fixed_s: float = 0.1  # work of a batch with rows, whatever their number
    empty_s: float = 0.06  # work of a batch without
    per_row_s: float = 1e-5
    waiting_s: float = 0.03  # for disks and the slowest task
    poll_s: float = 0.002  # work of a look that finds nothing
    beside: float = 0.0  # work that others do meanwhile, as a share of its own: GC, compiler, tasks
    spread: float = 0.0  # of the work from batch to batch: standard deviation of its logarithm
    driver: float = 0.0  # share of all work that only the driver's cores can do

    def work_s(self, rows: int) -> float:
        return self.fixed_s + rows * self.per_row_s if rows else self.empty_s


@dataclass(frozen=True, kw_only=True)
class SimulatedQuery(WindowedQuery):
    """One query on micro-batches."""

    traffic: Traffic
    costs: BatchCosts = BatchCosts()
    trigger_s: float | None = None  # a fixed interval; None: as fast as it goes
    windowed: bool = True  # False: no windows and no watermark, rows are only to be shown
    target_s: float | None = None  # wanted: latency of its windows, else the age of its results

    @property
    def delay_s(self) -> float:
        return self.traffic.watermark_ms(self.watermark_s) / 1e3

    @property
    def spec(self) -> QuerySpec:
        spec = replace(super().spec, target_s=self.target_s)
        if self.windowed:
            return spec
        deadlines = Deadlines((), (InputStream("simulated"),), self.output_mode)
        return replace(spec, deadlines=deadlines, one_batch=False)


@dataclass(frozen=True, slots=True)
class Result:
    """A window that came out."""

    query: str
    end_s: float
    done_s: float

    @property
    def latency_s(self) -> float:
        return self.done_s - self.end_s


class Execution:
    """How far one query is: Spark's rules for offsets, watermarks and results."""

    def __init__(self, query: SimulatedQuery) -> None:
        self.query = query
        self.stream = SimulatedStream(query.traffic.timeline())
        self.observer = BatchObserver()
        self.rows = 0  # read so far
        self._read_s = query.traffic.start_s - 1.0  # arrivals up to then have been read
        self._watermark_s: float | None = None  # that the last batch ran with
        self._coming_s: float | None = None  # and the next will
        self._batch: Batch | None = None  # the one that runs
        self.durations: list[tuple[int, float]] = []  # rows and seconds of those that ran
        self.began_s: list[float] = []  # when they began
        self.shown: list[tuple[float, float]] = []  # when, and the newest event of those with rows
        self._rng = np.random.default_rng(query.traffic.seed)
        self._window = query.window
        self.next_end_s = self._window.next_end(query.traffic.start_s)  # of the next result

    def begin(
        self, now_s: float, row_limit: int | None, watermark_s: float | None = None
    ) -> float | None:
        """Take offsets for a batch; the work it will be, or ``None`` if there is nothing to do.

        Nor does one begin that needs a later watermark than what has arrived can give it.
        """
        if self.query.windowed and self.query.one_batch and row_limit is None:
            self._raise_watermark(now_s)
            if watermark_s is not None and (self._coming_s or 0.0) < watermark_s:
                return None
        until_s = self._read_s if row_limit == 0 else now_s
        arrived = self.stream.arrived(now_s)
        if row_limit and arrived - self.rows > row_limit:
            until_s = self.stream.limited_s(self._read_s, now_s, row_limit)
        total = arrived if until_s == now_s else self.stream.arrived(until_s)
        rows = total - self.rows
        moved = self._coming_s is not None and self._coming_s != self._watermark_s
        if not rows and not moved:
            return None
        newest_s = self.stream.frontier_s(until_s) if rows else None
        self._watermark_s = self._coming_s
        self.rows, self._read_s = total, until_s
        self._batch = Batch(
            start_s=now_s,
            duration_s=0.0,
            rows=rows,
            max_event_s=newest_s,
            watermark_s=self._watermark_s,
            backlog_rows=float(arrived - total),
            arrived_rows=float(arrived),
        )
        work_s, spread = self.query.costs.work_s(rows), self.query.costs.spread
        return work_s * float(self._rng.lognormal(-spread * spread / 2, spread))

    def _raise_watermark(self, now_s: float) -> None:
        frontier_s = self.stream.frontier_s(now_s)
        if frontier_s is not None:
            mark_s = frontier_s - self.query.delay_s
            self._coming_s = max(mark_s, self._coming_s or mark_s)

    def end(self, now_s: float) -> list[Result]:
        """End the batch; return what it emitted."""
        batch = self._batch
        assert batch is not None, f"{self.query.name} ran no batch"
        if batch.max_event_s is not None:
            self.shown.append((now_s, batch.max_event_s))
            if self.query.windowed:
                mark_s = batch.max_event_s - self.query.delay_s
                self._coming_s = max(mark_s, self._coming_s or mark_s)
        # In append mode a window comes out with the batch after the one that read past it; in the
        # other modes its values are final already with that one.
        appends = self.query.output_mode == "append"
        closed_s = batch.watermark_s if appends else self._coming_s
        results = []
        while closed_s is not None and self.next_end_s <= closed_s:
            results.append(Result(self.query.name, self.next_end_s, now_s))
            self.next_end_s = self._window.next_end(self.next_end_s)
        took_s = now_s - batch.start_s
        ended = replace(batch, duration_s=took_s, rows_written=len(results))
        self.durations.append((batch.rows, took_s))
        self.began_s.append(batch.start_s)
        self.observer.update(ended, Coming(self._coming_s))
        self._batch = None
        return results
