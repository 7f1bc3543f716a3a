"""When the results of windows were complete, as far as batches and watermarks tell it."""

from typing import NamedTuple

from slackwater.core.model import QueryMetrics
from slackwater.core.windows import Deadlines

MOST = 50  # windows that one batch may complete; of more only the last count


class WindowResult(NamedTuple):
    """One window whose result is out."""

    end_s: float  # of the window, in event time
    latency_s: float  # from then until its batch was complete at the sink


class ResultObserver:
    """Watches one query, batch by batch.

    In append mode a batch writes the windows that the watermark it ran with has passed; in other
    modes a window is final once the watermark that follows the batch has. Where the engine does not
    tell that one, update mode looks a batch later than it is.

    >>> from slackwater.core.windows import InputStream, Window
    >>> deadlines = Deadlines((Window("tumbling", 3, 3),), (InputStream("ads", "at", 0.5),))
    >>> observer = ResultObserver()
    >>> observer.update(deadlines, QueryMetrics(watermark_s=2.9), 4.0)
    []
    >>> observer.update(deadlines, QueryMetrics(watermark_s=3.1), 4.5)
    [WindowResult(end_s=3.0, latency_s=1.5)]
    """

    def __init__(self) -> None:
        self._final_s: float | None = None  # windows up to here are out

    def update(
        self, deadlines: Deadlines, metrics: QueryMetrics, done_s: float
    ) -> list[WindowResult]:
        """Return what a batch that was complete at ``done_s`` has completed."""
        final_s = metrics.watermark_s
        if deadlines.output_mode != "append":
            final_s = metrics.next_watermark_s or final_s
        if final_s is None or not deadlines.has_deadline:
            return []
        before_s, self._final_s = self._final_s, final_s
        if before_s is None or final_s <= before_s:
            return []
        window = deadlines.closing[-1]  # the last in the order of the data flow: its are the rows
        end_s = window.next_end(max(before_s, final_s - MOST * window.slide_s))
        found: list[WindowResult] = []
        while end_s <= final_s and len(found) <= MOST:  # a slide may be too short to get on
            found.append(WindowResult(end_s, done_s - end_s))
            end_s = window.next_end(end_s)
        return found
