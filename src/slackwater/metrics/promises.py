"""Whether a query keeps its target."""

from collections.abc import Sequence

from slackwater.core.model import QuerySpec
from slackwater.metrics.results import WindowResult


class PromiseObserver:
    """Counts results that were in time for a query's target, and those that were not.

    In append mode a window must be out so soon after its end. All other results must not be
    older than that: what a batch shows may have come right after the look before it.

    >>> observer = PromiseObserver()
    >>> observer.update(QuerySpec("q", target_s=2.0), (), looked_s=10.0, done_s=11.5)
    >>> observer.update(QuerySpec("q", target_s=2.0), (), looked_s=11.0, done_s=14.0)
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
        done_s: float,
    ) -> None:
        """Take a batch with rows or results.

        Parameters
        ----------
        results
            The windows that it completed.
        looked_s
            When its input was last looked at before; None: never.
        done_s
            When the batch was complete at the sink.
        """
        if spec.target_s is None:
            return
        self.kept, self.broken = self.kept or 0, self.broken or 0
        deadlines = spec.deadlines
        if deadlines.has_deadline and deadlines.output_mode == "append":
            ages_s = [result.latency_s for result in results]
        else:
            ages_s = [] if looked_s is None else [done_s - looked_s]
        late = sum(age_s > spec.target_s for age_s in ages_s)
        self.broken += late
        self.kept += len(ages_s) - late
