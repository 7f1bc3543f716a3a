"""What a worker tells its supervisor, checked where it comes in."""

from typing import Any

import msgspec
from msgspec import Struct

from slackwater.ipc.framing import ProtocolError
from slackwater.ipc.messages import Message


class QueryCost(Struct, frozen=True):
    """What a query costs a worker, in cores."""

    fixed: float  # however few rows come
    slope: float  # further ones at accuracy 1
    most: float  # that it can use
    current: float  # part of its input that it processes now
    batches: int | None = None  # micro-batches from which that is known; None: enough

    @property
    def full(self) -> float:
        """Cores at accuracy 1."""
        return self.fixed + self.slope

    @property
    def needed(self) -> float:
        """The same, as far as it can use them."""
        return min(self.full, self.most)


class QueryReport(Struct, frozen=True):
    """One query as its worker sees it; ``None`` is "not known"."""

    cost: QueryCost | None = None
    accuracy: dict[str, float | None] | None = None
    part: dict[str, Any] | None = None  # for its neighbours, who read it themselves
    rate: float | None = None  # rows that arrive per second
    lag_s: float | None = None


class Hello(Message, frozen=True):
    """A worker has joined."""

    pid: int
    cores: float


class WorkerReport(Message, frozen=True, tag="report"):
    """What a worker runs, and the cores that it and others on its machine use."""

    used: float
    others: float
    queries: dict[str, QueryReport]


class Ended(Message, frozen=True):
    """A query does not run any more."""

    query: str
    error: str | None = None
    ordered: bool = False  # it was told to stop


FromWorker = Hello | WorkerReport | Ended


def read_from_worker(message: dict[str, Any]) -> FromWorker:
    """Read a message; raise :class:`ProtocolError` if it does not fit.

    >>> read_from_worker({"op": "hello", "pid": 7, "cores": 2})
    Hello(pid=7, cores=2.0)
    """
    try:
        found: FromWorker = msgspec.convert(message, FromWorker)
    except msgspec.ValidationError as error:
        raise ProtocolError(str(error)) from None
    return found
