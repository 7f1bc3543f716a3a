"""One run behind a clock gate: who may let it go on, and with which watermark."""

import contextlib
import logging
import threading
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET
from py4j.protocol import Py4JError

from slackwater.common.exceptions import first_line
from slackwater.core.clock import Deadline
from slackwater.core.protocols import Clock
from slackwater.engines.spark.gates.clock import ClockGate
from slackwater.engines.spark.gates.execution import ExecutionView, NotRaisable
from slackwater.engines.spark.gates.read_limits import ReadLimits
from slackwater.engines.spark.gates.watermark import WatermarkRaise
from slackwater.engines.spark.progress import known_progress, ran_a_batch
from slackwater.ipc.messages import Arrive, Grant

log = logging.getLogger("slackwater.fleet")

ABOUT_TO_S = 0.01
MARGIN = 0.8  # of max_wait: later than this after its arrival, a query may go on by itself any time


class TooEarly(Exception):
    """What has arrived cannot give a batch the watermark that it is to have."""


class GoneOn(Exception):
    """The query no longer waits: its gate has opened by itself, or was opened."""


@dataclass
class Held:
    """A run behind a clock gate."""

    gate: ClockGate
    view: ExecutionView
    limits: ReadLimits
    max_wait_s: float
    seq: int = 0  # arrivals so far
    waiting: bool = False
    starting: bool = False  # installed at start, first trigger not yet reached
    arrived_s: float = 0.0  # when it last came to its gate, on a clock that never jumps
    granted_s: float | None = None  # when it was let go on; None: it waits, or went by itself
    reads: bool = True  # whether its next trigger may read something
    found_nothing: bool = False  # its last trigger, which could have read what there was
    progress: dict[str, Any] | None = None  # of its last trigger, as it came to its gate
    bound_s: float = 0.0  # how long its gate holds it this time, at least
    _told_s: tuple[float, ...] = ()  # bounds that its gate was told since it last came
    raises: WatermarkRaise | None = None  # where its watermark can be raised ahead of Spark
    began_ms: int | None = None  # when its last trigger began, if that was to read everything
    # Held while it is let go on, or its gate is opened: a watermark must not move under a batch.
    turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def close(self, hold_s: float) -> None:
        """Hold from its next trigger on, for its own bound or for what the load asks for."""
        bound_s = max(self.max_wait_s, hold_s)
        self._told_s = (*self._told_s[-1:], bound_s)
        self.gate.close(bound_s)

    def open(self) -> None:
        """Open its gate; one that cannot be (its query is ending) must not keep others shut."""
        try:
            self.gate.open()
        except Exception:
            log.exception("the gate of %s could not be opened", self.gate.name)

    def arrive(self, now_s: float) -> None:
        """Take it that it has come: which bound its gate has read is not known if it changed."""
        self.arrived_s, self.granted_s = now_s, None
        self.bound_s = min(self._told_s, default=self.max_wait_s)
        self._told_s = self._told_s[-1:]

    def report(self, name: str, shown: str) -> Arrive:
        """Return all that is told of it as it comes to its gate and shows this.

        In one message: a decision between two of them would mix old and new.
        """
        progress = self.progress = self.view.hear(shown)
        ran = progress is not None and ran_a_batch(progress)
        self.found_nothing = not ran and self.reads and self.seq > 1
        self.reads = True
        left_rows = self.limits.left_rows(ran=ran)
        if self.limits.rows == 0:  # for once: who goes on without a grant must read again
            self.lift_limits()
        if self.raises is not None and self.began_ms is not None:
            self.raises.look(self.view.marks_ms, self.began_ms)
        return Arrive(
            name,
            self.seq,
            progress=known_progress(progress),
            watermark_ms=self.view.watermark_ms,
            input_watermarks_ms=self.view.parts_ms,
            backlog_rows=UNSET if left_rows is None else left_rows,
        )

    def stands(self, now_s: float) -> bool:
        """Tell whether it waits and will for a moment, as far as is known without the JVM."""
        return self.waiting and now_s - self.arrived_s < MARGIN * self.bound_s

    def leave_to_spark(self) -> None:
        """Raise its watermark no more."""
        if self.raises is not None:
            self.raises.close()
        self.raises = None

    def take_lost(self) -> str | None:
        """Return why an input has stopped telling how far it has come, once."""
        if self.raises is None:
            return None
        why_lost, self.raises.why_lost = self.raises.why_lost, None
        return why_lost

    def limit_rows(self, rows: int | None, clock: Clock) -> None:
        """Limit what the next batch reads from sources that are not ours; under ``turn``."""
        with contextlib.suppress(Py4JError):  # a query that is ending
            if not self.limits.are(rows) and self._waits(clock):
                self.limits.set_rows(rows)

    def lift_limits(self) -> None:
        """Let the query read what there is, wherever it is on its way."""
        with contextlib.suppress(Py4JError):
            self.limits.lift()

    def _waits(self, clock: Clock) -> bool:
        """Tell whether the query waits, and will for a moment: nothing may move under a batch."""
        waited_s = clock.monotonic() - self.arrived_s
        if waited_s > MARGIN * self.bound_s:
            return False
        # It may have told that it is there, and be about to wait.
        return Deadline(ABOUT_TO_S).wait_for(lambda: self.gate.occupied, every_s=0.001)

    def raise_watermark(self, grant: Grant, clock: Clock) -> None:
        """Raise the watermark to what has arrived, before the query goes on; under ``turn``.

        Raises
        ------
        TooEarly
            The batch needs a later one: it would find nothing, and costs nothing if it waits on.
        GoneOn
            A batch may be running: it must keep the watermark that it has.
        NotRaisable
            Spark must move it, from now on.
        """
        limited = grant.rows is not None or not self.limits.are_lifted
        now_ms = int(1000 * clock.now())
        self.began_ms = None if limited else now_ms
        if self.raises is None or self.view.watermark_ms is None:  # Spark's first trigger makes it
            return
        try:
            largest = self.view.takes_largest() if self.raises.several else False
            marks = self.view.marks_ms
            reach_ms = self.raises.reach_ms(marks, now_ms, limited=limited, largest=largest)
            # Where nobody knows what has arrived, the batch must go and see.
            if grant.watermark_ms is not UNSET and not limited and self.raises.is_told:
                found_ms = max(reach_ms or 0, self.view.watermark_ms or 0)
                if found_ms < grant.watermark_ms:
                    raise TooEarly
            if reach_ms is not None and reach_ms > (self.view.watermark_ms or 0):
                if not self._waits(clock):  # asking may have taken its time
                    raise GoneOn
                self.view.raise_watermark(reach_ms)
        except Py4JError as error:
            raise NotRaisable(first_line(str(error))) from None
