"""One engine, with what is known of it; one that fails is said to once and asked again."""

from collections.abc import Callable, Iterable
from typing import Any

from slackwater.core.clock import RealClock, Timer
from slackwater.core.entities import Reading, Values
from slackwater.core.errors import EngineError
from slackwater.core.protocols import Clock
from slackwater.engines import outside
from slackwater.engines.outside import Driver
from slackwater.metrics import MetricProvider
from slackwater.operations.middleware.file import EngineSection

MOST_PAUSE_S = 5.0  # between two questions to an engine that does not answer
HANGING = 10.0  # and at least so many times as long as it took to fail


class Engine:
    """A driver and its metrics.

    Parameters
    ----------
    name, section
        As in the file.
    wanted
        Metrics that policies ask of it.
    say
        Told when it fails and when it is back, once each.
    clock
        Where time comes from.
    """

    def __init__(
        self,
        name: str,
        section: EngineSection,
        wanted: Iterable[str],
        say: Callable[[str], None],
        clock: Clock = RealClock(),
    ) -> None:
        self.name = name
        self.driver: Driver = outside.load(section.driver, label=name, **section.parameters)
        self.provider = MetricProvider(name, self.driver.provides, wanted)
        self.failing: str | None = None
        self.reading: Reading | None = None
        self.values: dict[str, Values] = {}
        self._say = say
        self._clock = clock
        self._pause_s = 0.0
        self._ask_again_s = 0.0

    def read(self, now_s: float) -> bool:
        """Look at it; whether there is something to see."""
        if self.reading is not None and self.reading.at_s == now_s:
            return True
        if now_s < self._ask_again_s:
            return False
        timer = Timer(self._clock)
        try:
            reading = self.driver.read(now_s)
            self.values = self.provider.update(reading)
        except EngineError as error:
            self._fail(str(error), now_s, timer.elapsed_s)
            return False
        self.reading = reading
        if self.failing is not None:
            self._say(f"{self.name} is back")
            self.failing = None
        self._pause_s = 0.0
        return True

    def status(self) -> dict[str, Any]:
        """Return its state for ``--status``, which is asked for in another thread."""
        reading = self.reading
        operators = () if reading is None else reading.operators
        return {
            "failing": self.failing,
            "operators": len(operators),
            "threads": sum(len(operator.threads) for operator in operators),
        }

    def _fail(self, reason: str, now_s: float, took_s: float) -> None:
        if self.failing is None:
            self._say(f"going on without {self.name}: {reason}")
        self.failing = reason
        self.reading = None
        self.values = {}
        # An engine that hangs holds up the others each time: it is asked less and less often.
        self._pause_s = min(MOST_PAUSE_S, max(0.5, 2 * self._pause_s))
        self._ask_again_s = now_s + took_s + max(self._pause_s, HANGING * took_s)
