"""All runs behind clock gates: which of them wait, and whether anybody holds them."""

import threading

from slackwater.core.protocols import Clock
from slackwater.engines.spark.gates.watermark import WatermarkRaise
from slackwater.engines.spark.queries.held import Held
from slackwater.ipc.messages import Grant


class HeldRuns:
    """Knows every run behind a gate, for any thread that asks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # guards all below, and who waits
        self._holding = False  # whether the controller is there and wants queries held
        self._hold_s = 0.0  # the least time that the load asks gates to hold for
        self._held: dict[str, Held] = {}  # by run

    def __contains__(self, run: str | None) -> bool:
        return run in self._held

    @property
    def hold_s(self) -> float | None:
        """How long gates are to hold at least, as the load asks; None: nobody holds."""
        with self._lock:
            return self._hold_s if self._holding else None

    @property
    def runs(self) -> list[str]:
        """All of them."""
        return list(self._held)

    @property
    def granted_s(self) -> dict[str, float]:
        """When the batches that run now were let in, by run."""
        with self._lock:
            return {run: h.granted_s for run, h in self._held.items() if h.granted_s is not None}

    def thread_cpu_s(self, run: str) -> float | None:
        """Return the CPU time that the thread of a run has used; ``None``: nobody can see."""
        held = self._held.get(run)
        return None if held is None else held.view.thread_cpu_s()

    def get(self, run: str) -> Held | None:
        """Return a run, if it is behind a gate."""
        return self._held.get(run)

    def add(self, run: str, held: Held) -> None:
        """Take in a run whose gate has been put on."""
        with self._lock:
            self._held[run] = held
            if self._holding:
                held.close(self._hold_s)

    def take_off(self, run: str) -> None:
        """Take the gate off a run that has ended, or goes on as plain Spark, if it has one."""
        with self._lock:
            held = self._held.pop(run, None)
        if held is not None:
            with held.turn:
                held.lift_limits()
                held.gate.uninstall()
                held.leave_to_spark()

    def bound_wait(self, run: str | None, max_wait_s: float) -> None:
        """Hold a run for so long at most, unless the load asks for more."""
        with self._lock:
            held = self._held.get(run or "")
            if held is not None:
                held.max_wait_s = max_wait_s
                if self._holding:
                    held.close(self._hold_s)

    def raise_watermarks(self, run: str, raises: WatermarkRaise | None) -> None:
        """Raise the watermark of a run from now on, as far as this says."""
        with self._lock:
            held = self._held.get(run)
            if held is not None:
                held.raises = raises

    # -- all at once ----------------------------------------------------------------------------

    def hold_all(self) -> list[Held]:
        """Hold every run from its next trigger on; return them."""
        with self._lock:
            self._holding = True
            every = list(self._held.values())
            for held in every:
                held.close(self._hold_s)
        return every

    def open_all(self) -> None:
        """Let every run go on as it likes."""
        with self._lock:
            self._holding = False
            every = list(self._held.values())
            for held in every:
                held.waiting = False
        for held in every:
            with held.turn:  # no watermark is raised under a batch that this lets begin
                held.lift_limits()
                held.open()

    def hold_for(self, hold_s: float) -> None:
        """Hold for so long at least, from the next trigger of each query on."""
        with self._lock:
            self._hold_s = hold_s
            for held in self._held.values() if self._holding else ():
                held.close(hold_s)

    def all_wait(self, runs: set[str | None]) -> bool:
        """Tell whether none of these runs has a batch; where nobody holds, nobody waits for that.

        Runs that have no gate do not count.
        """
        with self._lock:
            waits = (held.waiting for run, held in self._held.items() if run in runs)
            return not self._holding or all(waits)

    # -- one after another ----------------------------------------------------------------------

    def arrive(self, run: str) -> Held | None:
        """Take it that a run has come to its gate, and return it, if it has one."""
        with self._lock:
            held = self._held.get(run)
            if held is not None:
                held.seq += 1
                held.waiting = self._holding
                held.arrive(self._clock.monotonic())
        return held

    def take_grant(self, run: str | None, grant: Grant) -> Held | None:
        """Return the run that a grant is for; None: that trigger has gone on without it."""
        with self._lock:
            held = self._held.get(run or "")
            if held is None or not held.waiting or held.seq != grant.seq:
                return None
            held.waiting = False
            return held

    def wait_on(self, held: Held) -> int:
        """Have a run wait on that came when it came; return the number of its arrival now."""
        with self._lock:
            held.seq += 1
            held.waiting = self._holding
            return held.seq
