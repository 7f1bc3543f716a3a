"""What Klink remembers of a query, and what it makes of its costs."""

import math

from slackwater.core.model import QueryState
from slackwater.policies._supply import Supply
from slackwater.progress.base import SweepDelay
from slackwater.progress.epochs import RETRY_S, QueryEpochs
from slackwater.progress.forwarding import row_cost_s

UNKNOWN_COST_S = 0.2  # of a micro-batch, until the query has shown it
LEAST_FIXED_S = 0.2  # of a drain where rows cost: an intercept of two noisy costs may be nothing
UNSEEN = 8.0  # times the most rows that a batch had: what so many cost is not known
DRAIN_PAYS = 0.5  # of a batch's fixed cost: what waiting rows must cost for a drain to pay
FORGET_ROWS = 0.95  # of the most rows of a batch, at each
LONG_S = 1.0  # batches all of one size that take longer: whether fewer rows take less is tried
SAME_SIZE = 0.7  # of the most rows of a batch: one that had fewer was of another size
TRY_AFTER = 2  # batches in a row of one size; twice as many after each trial
TRY_SELDOM = 64  # and at most
TRY = 0.25  # of the most rows of a batch: what such a trial reads

EMIT, SWEEP, OTHER = range(3)  # what its next batch is for


class Known:
    """What is remembered of one query between decisions."""

    def __init__(self, place: int, epochs: QueryEpochs) -> None:
        self.place = place  # in the snapshot
        self.epochs = epochs
        self.seen: tuple[object, object] = (None, None)  # metrics and admission of the last look
        self.batches = 0  # that ran until the last look
        self.fruitless = 0  # admissions in a row that ran no batch
        self.fixed_s = UNKNOWN_COST_S
        self.cost_s = UNKNOWN_COST_S  # of all batches that the next result still needs
        self.rank = OTHER
        self.first: SweepDelay | None = None  # the earliest of its inputs'
        self.expected_s = math.inf  # when the sweeping watermark arrives, on average
        self.urgency_s = math.inf  # the latest start for a result without delay
        self.due_s = 0.0  # from when on the next batch finds something
        self.closed_s = math.inf  # when its window closes without new data, if it may
        self.drain_s = math.inf  # from when on it is worth while to read early
        self.tries = 0  # sweeps in a row, when one could be expected, that closed no window
        self.refreshing = False  # its next batch shows newer rows and completes no window
        self.stretch = 1.0  # of the time between two looks: who finds nothing is asked less often
        self.soft_until_s = -math.inf  # until then it gives way to sweeps that are near
        # Batches after which one came at once, to write sessions that had ended.
        self.closed_after = -2
        self.rows = 0  # read until the last look
        self.supply = Supply()
        self.seen_in_sink = False  # the batch that runs now, or ran last
        self.slow_sink = False  # its last batch only waited for most of its time
        self.has_input: bool | None = None  # as its source told at the last look
        self.came_s = -math.inf  # when its source last told that something had come, after nothing
        self.most_rows = 0.0  # of a batch; what was long ago counts less and less
        self.alike = 0  # batches in a row of about that size
        self.try_after = TRY_AFTER  # so many another size is tried
        self.batch_s = math.inf  # of the last batch
        self.work_s = math.inf  # of it or the one before, whichever was shorter

    def count_rows(self, rows: float) -> None:
        """Take the rows of a batch."""
        self.most_rows = max(rows, FORGET_ROWS * self.most_rows)
        if rows > SAME_SIZE * self.most_rows:
            self.alike += 1
            return
        if self.alike >= self.try_after:
            self.try_after = min(TRY_SELDOM, 2 * self.try_after)
        self.alike = 0


def again_s(known: Known, query: QueryState) -> float:
    """Return when to try again; who finds nothing to do is asked less and less often."""
    if not known.fruitless:
        return 0.0
    return (query.admitted_s or 0.0) + RETRY_S * 2.0 ** min(known.fruitless, 4)


def cost_s(known: Known, query: QueryState) -> float:
    """Return the cost of all batches that its next result still needs, here and downstream."""
    metrics = query.metrics
    emit_s = (metrics.batch_empty_s or known.fixed_s) + metrics.beyond.fixed_s
    if known.epochs.stage == "emit":  # what is in memory comes before its watermark
        return emit_s + (metrics.buffered_rows or 0.0) * row_cost_s(metrics)
    sweep_s = known.fixed_s + (metrics.backlog_rows or 0.0) * row_cost_s(metrics)
    if known.epochs.deadlines.output_mode == "append" and not query.spec.one_batch:
        return sweep_s + emit_s
    return sweep_s + metrics.beyond.fixed_s


def row_s(known: Known, query: QueryState, rows: float) -> float:
    """Return what each of so many rows costs here.

    Batches of one size show no slope, and all cost seems fixed; of a multiple of what was ever
    read that is not to be believed.

    >>> from slackwater.core.model import QueryMetrics, QuerySpec
    >>> known = Known(0, None)
    >>> known.most_rows = 100.0
    >>> query = QueryState(QuerySpec("q"), metrics=QueryMetrics(batch_s=0.3, batch_per_row_s=0.0))
    >>> row_s(known, query, 200.0), row_s(known, query, 1e6)
    (0.0, 0.003)
    """
    metrics = query.metrics
    if metrics.batch_per_row_s or not known.most_rows or rows < UNSEEN * known.most_rows:
        return metrics.batch_per_row_s or 0.0
    return (metrics.batch_s or known.fixed_s) / known.most_rows


def grown_cost_s(known: Known, query: QueryState, at_s: float) -> float:
    """Return how much the cost will have grown by rows that come until then."""
    rows = waiting_rows(query, at_s)
    came = max(0.0, rows - (query.metrics.backlog_rows or 0.0))
    return came * (row_s(known, query, rows) + query.metrics.beyond.per_row_s)


def drained_fixed_s(known: Known, query: QueryState) -> float:
    """Return the fixed cost of a drain.

    Once it is known what a row costs, an empty batch of long ago says nothing of it.
    """
    metrics = query.metrics
    if not known.most_rows or not metrics.batch_per_row_s:
        return known.fixed_s
    return max(metrics.batch_fixed_s or 0.0, LEAST_FIXED_S)


def drain_s(known: Known, query: QueryState, pause_s: float = 0.0) -> float:
    """Return when enough rows wait that reading them early shortens the sweep.

    Infinite if that is not before it.

    Parameters
    ----------
    pause_s
        Since it was last let in, at least.
    """
    metrics, fixed_s = query.metrics, drained_fixed_s(known, query)
    takes_s = (1 + 2 * DRAIN_PAYS) * fixed_s
    if known.epochs.stage != "sweep":
        return math.inf
    if metrics.batch_per_row_s:
        rows = DRAIN_PAYS * fixed_s / metrics.batch_per_row_s
    elif known.most_rows:
        rows = UNSEEN * known.most_rows  # nobody knows what so many cost: that is found out early
        # With steady input all cost seems fixed. If that is not so, a long batch can be many short
        # ones, that hold up nobody: Spark's tasks cannot be interrupted.
        if fixed_s > LONG_S and known.alike >= known.try_after:
            rows, takes_s = TRY * known.most_rows, fixed_s
    else:
        return math.inf
    rows -= metrics.backlog_rows or 0.0
    if rows <= 0:
        from_s = metrics.batch_start_s or 0.0
    elif metrics.arrival_rate:
        from_s = (metrics.batch_start_s or 0.0) + rows / metrics.arrival_rate
    else:
        return math.inf
    from_s = max(from_s, (query.admitted_s or 0.0) + pause_s)
    return from_s if from_s + takes_s <= known.due_s else math.inf


def waiting_rows(query: QueryState, now_s: float) -> float:
    """Return rows arrived and not read: what the last batch left, and what has come since."""
    metrics = query.metrics
    since_s = now_s - metrics.batch_start_s if metrics.batch_start_s is not None else 0.0
    return (metrics.backlog_rows or 0.0) + max(0.0, since_s) * (metrics.arrival_rate or 0.0)
