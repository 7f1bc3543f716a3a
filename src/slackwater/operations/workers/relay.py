"""What queries of one application tell each other across workers: only neighbours hear."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from slackwater.operations.workers.channel import Message
from slackwater.operations.workers.messages import QueryReport
from slackwater.operations.workers.model import Placed


class Relayed(NamedTuple):
    """A message for a worker."""

    worker: str
    message: Message


def relayed(
    queries: Mapping[str, Placed], reported: Mapping[str, QueryReport]
) -> Iterator[Relayed]:
    """Tell readers of a query its progress, and those it reads what is ahead.

    Parameters
    ----------
    queries
        All of the fleet.
    reported
        Those of one worker, as it reported them.
    """
    for name, shown in reported.items():
        part, teller = shown.part, queries.get(name)
        if part is None or teller is None:
            continue
        ahead = {key: part[key] for key in ("windows", "delay_s", "cost")}
        for placed in queries.values():
            if placed.worker is None:
                continue
            message = {"op": "tell", "query": placed.wanted.name, "by": name}
            if placed.wanted.of_task in teller.wanted.reads:
                yield Relayed(placed.worker, {**message, **ahead})
            if teller.wanted.of_task in placed.wanted.reads and part["frontiers"]:
                yield Relayed(placed.worker, {**message, "frontiers": part["frontiers"]})
