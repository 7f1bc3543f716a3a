"""A streaming query of a fleet: as ever, and it shows itself in a notebook."""

from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from slackwater.engines.spark.queries.status import FleetStatus


class FleetQuery(StreamingQuery):
    """What :meth:`Fleet.start` returns.

    Parameters
    ----------
    query
        As Spark knows it.
    status
        Of the fleet with this query alone.
    """

    def __init__(self, query: StreamingQuery, status: Callable[[], FleetStatus]) -> None:
        super().__init__(query._jsq)
        self._status = status

    def _repr_html_(self) -> str:
        return self._status()._repr_html_()
