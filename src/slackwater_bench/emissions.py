"""What a query emitted, by window, and which batches it took."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from slackwater.engines.spark.progress import batch_end_s, batch_of, ran_a_batch

Progress = dict[str, Any]


@dataclass(slots=True)
class Emission:
    """One window as it came."""

    done_s: float  # when it was complete at the sink
    work_s: float | None  # of its sweep and its emit, often one batch; None: no sweep was seen
    rows: Counter[tuple[Any, ...]] = field(default_factory=Counter)


def emissions(
    table: pa.Table,
    columns: Sequence[str],
    progresses: Sequence[Progress],
    asking: bool = True,
    delay_us: int = 0,
) -> dict[int, Emission]:
    """Return what a query emitted, by window end in microseconds.

    Parameters
    ----------
    table
        The memory sink's: rows in the order of batches; Spark tells how many each wrote.
    columns
        Those of a result, after its window.
    progresses
        Of all triggers of the query, in order.
    asking
        Whether asking sources for their offsets is work. Under a source gate it is waiting.
    delay_us
        Of the watermark: it tells which batch swept a window.
    """
    ends = table.column("window_end").cast("int64").to_pylist()
    values = [_hashable(table.column(column).to_pylist()) for column in columns]
    found: dict[int, Emission] = {}
    position = 0
    before: Progress | None = None
    swept_us: float | None = None  # windows up to here were swept by batches before this one
    for progress in filter(ran_a_batch, progresses):
        written = max(0, progress["sink"]["numOutputRows"])
        done_s, both_s = batch_end_s(progress), _work_s([before, progress], asking)
        alone_s = _work_s([progress], asking)
        for index in range(position, min(position + written, len(ends))):
            alone = swept_us is not None and swept_us < ends[index]
            work_s = alone_s if alone else both_s
            emission = found.setdefault(ends[index], Emission(done_s, work_s))
            emission.done_s, emission.work_s = done_s, work_s
            emission.rows[tuple(column[index] for column in values)] += 1
        position += written
        before = progress
        newest_s = batch_of(progress).max_event_s
        if newest_s is not None:
            mark_us = newest_s * 1e6 - delay_us
            swept_us = mark_us if swept_us is None else max(swept_us, mark_us)
    return found


def _hashable(values: list[Any]) -> list[Any]:
    return [tuple(value) if isinstance(value, list) else value for value in values]


def wasted(progresses: Sequence[Progress], first_s: float, last_s: float) -> int:
    """Count batches that ended in a stretch of time, emitted nothing and led to nothing.

    A batch leads to something when the next one emits: then it was that one's sweep.
    """
    ran = [progress for progress in progresses if ran_a_batch(progress)]
    emitted = [progress["sink"]["numOutputRows"] > 0 for progress in ran]
    led = [*emitted, False][1:]
    return sum(
        first_s < batch_end_s(progress) <= last_s and not mine and not following
        for progress, mine, following in zip(ran, emitted, led, strict=True)
    )


def _work_s(batches: Sequence[Progress | None], asking: bool) -> float | None:
    """Sum the batches, the last only up to its result, as latencies are measured."""
    durations = [batch["durationMs"] for batch in batches if batch is not None]
    if len(durations) < len(batches):
        return None
    work_ms = sum(d["triggerExecution"] for d in durations)
    if not asking:
        work_ms -= sum(d.get("latestOffset", 0) for d in durations)
    return float(work_ms - durations[-1].get("commitOffsets", 0)) / 1000
