"""Instances that have just come to a worker: they are given time, and do not go back at once."""

from dataclasses import dataclass

from slackwater.core.errors import UsageError

Key = tuple[str, int]  # an instance: its task and its number


@dataclass
class _Arrival:
    since_s: float
    origin: str | None  # the worker it left; None: it is new
    left_s: float  # when it did
    warm: bool = False


class WarmUps:
    """Remembers who came when, and from where.

    Parameters
    ----------
    limit_s
        Of a warm-up: after this an instance is like any other, whatever it has reached.
    stay_s
        For so long an instance does not go back to where it was moved away from.

    Examples
    --------
    >>> coming = WarmUps(limit_s=60, stay_s=300)
    >>> coming.begin(("sink", 0), 0.0, origin="w1")
    >>> coming.warming(30.0), coming.barred(("sink", 0), 100.0)
    ({('sink', 0)}, 'w1')
    >>> coming.reached(("sink", 0))
    >>> coming.warming(30.0), coming.barred(("sink", 0), 301.0)
    (set(), None)
    """

    def __init__(self, limit_s: float = 60.0, stay_s: float = 300.0) -> None:
        if not limit_s > 0 or not stay_s >= 0:
            raise UsageError("a warm-up needs limit_s > 0 and stay_s >= 0")
        self.limit_s = limit_s
        self.stay_s = stay_s
        self._arrivals: dict[Key, _Arrival] = {}

    def begin(self, key: Key, now_s: float, origin: str | None = None) -> None:
        """Note that an instance starts on a worker that it was not on before.

        Without an origin it may be one that was told to leave some time ago, and starts now.
        """
        left_s, before = now_s, self._arrivals.get(key)
        if origin is None and before is not None:
            origin, left_s = before.origin, before.left_s
        self._arrivals[key] = _Arrival(now_s, origin, left_s)

    def reached(self, key: Key) -> None:
        """Note that an instance has come to its minimum accuracy."""
        if key in self._arrivals:
            self._arrivals[key].warm = True

    def warming(self, now_s: float) -> set[Key]:
        """Return those that are not warm yet."""
        return {
            key
            for key, arrival in self._arrivals.items()
            if not arrival.warm and now_s < arrival.since_s + self.limit_s
        }

    def barred(self, key: Key, now_s: float) -> str | None:
        """Return the worker that an instance must not return to yet."""
        arrival = self._arrivals.get(key)
        if arrival is None or now_s >= arrival.left_s + self.stay_s:
            return None
        return arrival.origin
