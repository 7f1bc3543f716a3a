"""Whether a query keeps its target, or the interval of its trigger."""

from collections.abc import Sequence

from slackwater.core.model import QuerySpec
from slackwater.metrics.results import WindowResult

PUNCTUAL = 1.1  # times the interval of a trigger: who begins later has missed it


class PromiseObserver:
    """Counts results that were in time for a query's target, and those that were not.

    In append mode a window must be out so soon after its end. All other results must not be
    older than that: what a batch shows may have come right after the look before it. Where only
    the trigger has an interval, results must be refreshed so often; of windows in append mode that
    promises nothing.

    >>> observer = PromiseObserver()
    >>> spec = QuerySpec("q", target_s=2.0)
    >>> observer.update(spec, (), looked_s=10.0, began_s=11.0, done_s=11.5)
    >>> observer.update(spec, (), looked_s=11.0, began_s=13.0, done_s=14.0)
    >>> observer.kept, observer.broken
    (1, 1)
    """

    def __init__(self) -> None:
        self.kept: int | None = None  # None: nothing was promised
        self.broken: int | None = None

    def update(
        self,
        spec: QuerySpec,
        results: Sequence[WindowResult],
        looked_s: float | None,
        began_s: float | None,
        done_s: float,
    ) -> None:
        """Take a batch with rows or results.

        Parameters
        ----------
        results
            The windows that it completed.
        looked_s
            When its input was last looked at before; None: never.
        began_s, done_s
            When the batch was admitted, and when it was complete at the sink.
        """
        windowed = spec.deadlines.has_deadline and spec.deadlines.output_mode == "append"
        if spec.target_s is not None:
            ends_s = done_s
            most_s = spec.target_s
        elif spec.trigger_s is not None and not windowed and began_s is not None:
            ends_s = began_s
            most_s = PUNCTUAL * spec.trigger_s
        else:
            return
        if windowed:
            ages_s = [result.latency_s for result in results]
        else:
            ages_s = [] if looked_s is None else [ends_s - looked_s]
        late = sum(age_s > most_s for age_s in ages_s)
        self.broken = (self.broken or 0) + late
        self.kept = (self.kept or 0) + len(ages_s) - late
