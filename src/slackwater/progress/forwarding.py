"""What the parts of a query on different nodes tell each other, and what each makes of it.

Downstream goes how the stream has progressed: sweeping watermarks, from where they are made.
Upstream goes what lies ahead: the windows that wait, and what a result still costs. A part hears
from its neighbours alone; what came from further on is in what they say.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from slackwater.core.model import Outlook, QueryMetrics, Sweep
from slackwater.core.windows import Deadlines, Window


def outlook(metrics: QueryMetrics, emits: bool = False) -> Outlook:
    """Return what a result costs from here on, for the part before.

    What waits here is not told: it is worked off while the part before works, so it is no cost of
    what is still there. Counted as one it would send most to where most waits already.

    Parameters
    ----------
    emits
        Whether a result takes another batch after the one that reads its last row.

    Examples
    --------
    >>> sink = QueryMetrics(batch_fixed_s=0.25, batch_empty_s=0.125, batch_per_row_s=1e-5)
    >>> outlook(sink, emits=True)
    Outlook(fixed_s=0.375, per_row_s=1e-05)
    """
    fixed_s = (metrics.batch_fixed_s or 0.0) + metrics.beyond.fixed_s
    if emits:
        fixed_s += metrics.batch_empty_s or metrics.batch_fixed_s or 0.0
    return Outlook(fixed_s, row_cost_s(metrics))


def row_cost_s(metrics: QueryMetrics) -> float:
    """Return what a row costs, here and in all parts downstream."""
    return (metrics.batch_per_row_s or 0.0) + metrics.beyond.per_row_s


def deadlines_upstream(own: Deadlines, delay_s: float, windows: Sequence[Window]) -> Deadlines:
    """Return the deadlines of a part that writes what another part windows.

    It has done its share of a window once it has read past its end, whatever its output mode. The
    other part's watermark may be later than ours by another delay: then windows count as ending
    so much later.

    Parameters
    ----------
    own
        What was found of the part itself.
    delay_s, windows
        Of the part downstream.

    Examples
    --------
    >>> from slackwater.core.windows import InputStream
    >>> own = Deadlines(inputs=(InputStream("feed", "at", 0.5),))
    >>> found = deadlines_upstream(own, 2.0, [Window("tumbling", 3.0, 3.0)])
    >>> found.windows[0].offset_s, found.output_mode
    (1.5, 'update')
    """
    delays = [s.watermark_delay_s for s in own.inputs if s.watermark_delay_s is not None]
    if own.windows or not delays:
        return own  # it has deadlines of its own, or does not show how far it is
    later_s = delay_s - max(delays)
    shifted = (replace(w, offset_s=w.offset_s + later_s, inputs=()) for w in windows)
    return replace(own, windows=tuple(shifted), output_mode="update")


class SweepsSeen:
    """Turns what a part upstream says of its progress into sweeping watermarks.

    Examples
    --------
    >>> seen = SweepsSeen()
    >>> window, delay_s = Window("tumbling", 3.0, 3.0), 0.5
    >>> seen.take([(2.0, 2.1), (3.6, 3.8)], [window], delay_s)
    [Sweep(end_s=3.0, arrived_s=3.8)]
    """

    def __init__(self) -> None:
        self._frontier_s: float | None = None

    def take(
        self, frontiers: Iterable[tuple[float, float]], windows: Sequence[Window], delay_s: float
    ) -> list[Sweep]:
        """Return windows that were completed, in order; of several at once the last.

        Parameters
        ----------
        frontiers
            Largest event times that could be read, each with the time from when on.
        windows, delay_s
            Of the part downstream.
        """
        found = []
        for frontier_s, at_s in frontiers:
            before, self._frontier_s = self._frontier_s, max(frontier_s, self._frontier_s or 0.0)
            if before is None or not windows:
                continue
            ends = (_last_end(window, self._frontier_s - delay_s) for window in windows)
            end_s = max(ends)
            if end_s > before - delay_s:
                found.append(Sweep(end_s, at_s))
        return found


def _last_end(window: Window, time_s: float) -> float:
    """Return the last window end that is not after a time."""
    return window.next_end(time_s) - window.slide_s
