"""Asks the sources of queries that found nothing whether something has come.

A trigger that finds nothing costs ten milliseconds; a look at a folder costs a few microseconds,
and one question to a broker is for all queries that read there. If nobody asks, or no answer comes,
the controller is told nothing and lets triggers look, as it would without.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from py4j.java_gateway import JavaObject

from slackwater.common.exceptions import first_line
from slackwater.common.procfs import thread_cpu_s
from slackwater.core.protocols import Clock
from slackwater.engines.spark.queries.held import Held
from slackwater.engines.spark.sources.arrivals import (
    Arrivals,
    ArrivalsFinder,
    Mark,
    Untold,
    counts_rows,
)
from slackwater.ipc.messages import INPUTS_LAST_S, Inputs

log = logging.getLogger("slackwater.fleet")

LEAST_S = 0.5  # between two questions
MOST_S = 10.0  # what was told lasts until the next
SHARE = 0.01  # of one core, at most, unless that means to ask less often than this
IN_JVM = 2.0  # times our own CPU time: what a question takes that goes through the JVM
SETTLED_S = 0.2  # at its gate: who is let go on at once is not asked about
ANSWER_S = 1.0  # after this nobody waits for an answer; it counts when it comes
KEPT_S = 1.0  # rows that wait, until they are counted anew
RENEW_S = INPUTS_LAST_S / 3  # then what is known is said again, as long as there are questions
ASKERS = 4  # servers and file systems that are asked at once


@dataclass(frozen=True, slots=True)
class _Count:
    """One question for how many rows wait."""

    began_s: float
    answer: Future[int | None]

    def lasts(self, now_s: float) -> bool:
        """Tell whether it will do: it is not answered yet, or was told a moment ago."""
        if not self.answer.done():
            return True
        failed = self.answer.cancelled() or self.answer.exception() is not None
        return not failed and now_s - self.began_s < KEPT_S

    def rows(self) -> int | None:
        """Return what was told; None: nothing yet, or nobody can."""
        if not self.answer.done() or self.answer.cancelled() or self.answer.exception():
            return None
        return self.answer.result()


@dataclass
class _Watched:
    """One run."""

    name: str
    held: Held
    execution: JavaObject
    sources: tuple[Arrivals, ...] | None = None  # None: not looked for yet
    why_not: str | None = None  # why no answer came, the last time
    counts: bool | None = None  # whether a source of its tells rows left; None: not looked yet
    count: _Count | None = None  # the last: there is never another that is not answered yet
    untold: bool = False  # none will: its sources are not asked again
    quiet: bool = False  # its last trigger found nothing
    mark: Mark = None  # of its sources, when they were last asked
    mark_seq: int = 0  # at which of its arrivals that was
    read: Mark = None  # the one that stands for "all of it was read"; None: nobody knows
    answer: bool | None = None
    asked: Future[Mark] | None = None  # not answered yet
    asked_seq: int = 0  # at which of its arrivals it was asked

    @property
    def quick(self) -> bool:
        return self.sources is not None and all(source.quick for source in self.sources)


class InputWatch:
    """Asks in threads of its own, the less often the more there is to ask.

    Parameters
    ----------
    send
        Tells the controller.
    finder
        Knows what tells of a query's sources.
    """

    def __init__(
        self, send: Callable[[Inputs], None], clock: Clock, finder: ArrivalsFinder | None = None
    ) -> None:
        self._send = send
        self._clock = clock
        self._finder = finder or ArrivalsFinder(clock)
        self._lock = threading.Lock()  # guards the two below
        self._watched: dict[str, _Watched] = {}  # by run
        self._news = False  # a query has come to its gate since the last message
        self._told: tuple[tuple[str, ...], tuple[str, ...]] = (), ()
        self._told_s = 0.0
        self._asked = 0
        self._asking_s = 0.0
        self._closed = threading.Event()
        self._pool = ThreadPoolExecutor(ASKERS, thread_name_prefix="slackwater-input")
        self._thread = threading.Thread(target=self._run, name="slackwater-inputs", daemon=True)
        self._thread.start()

    def watch(self, run: str, name: str, held: Held, execution: JavaObject) -> None:
        """Ask for a run from now on, whenever it has found nothing."""
        with self._lock:
            self._watched[run] = _Watched(name, held, execution)

    def forget(self, run: str) -> None:
        """Ask no more for a run."""
        with self._lock:
            self._watched.pop(run, None)

    def arrive(self, run: str, found_nothing: bool) -> None:
        """Take it that a run has come to its gate, and what its trigger found.

        What was seen at its sources before a trigger that found nothing had all been read.
        """
        with self._lock:
            one = self._watched.get(run)
            if one is None or not (found_nothing or one.quiet):
                return
            one.quiet, one.answer, self._news = found_nothing, None, True
            # This may be told late, when its sources were asked once more since it came.
            seen_before = one.mark_seq < one.held.seq
            one.read = one.mark if found_nothing and seen_before else None
            if not found_nothing:
                one.mark = None
                for source in one.sources or ():
                    source.forget()

    def rows_left(self, runs: Iterable[str]) -> dict[str, int]:
        """Ask now how many rows wait for some runs; who does not tell in time is left out."""
        now_s = self._clock.monotonic()
        with self._lock:
            if self._closed.is_set():
                return {}
            asked = [(run, self._watched[run]) for run in runs if run in self._watched]
            counts = {run: self._count(one, now_s) for run, one in asked if _may_count(one)}
        # Those that were asked for before, and did not come then, are not waited for again.
        left_s = max((one.began_s + ANSWER_S - now_s for one in counts.values()), default=0.0)
        wait([one.answer for one in counts.values()], max(0.0, left_s))
        found = {run: one.rows() for run, one in counts.items()}
        return {run: rows for run, rows in found.items() if rows is not None}

    def _count(self, one: _Watched, now_s: float) -> _Count:
        """Return the question that is under way or was answered lately, or put one."""
        if one.count is None or not one.count.lasts(now_s):
            one.count = _Count(now_s, self._pool.submit(self._count_left, one))
        return one.count

    def _count_left(self, one: _Watched) -> int | None:
        if one.counts is None:
            one.counts = counts_rows(one.execution)
        if not one.counts:
            return None
        try:
            told = [source.rows_left() for source in self._sources(one)]
        except Untold:
            one.counts = False
            raise
        known = [rows for rows in told if rows is not None]
        return sum(known) if known and len(known) == len(told) else None

    def _sources(self, one: _Watched) -> tuple[Arrivals, ...]:
        if one.sources is None:
            one.sources = self._finder.find(one.execution)
        return one.sources

    def close(self) -> None:
        """Ask no more; what was asked for last is not waited for."""
        self._closed.set()

    def _run(self) -> None:
        pause_s = LEAST_S
        while not self._closed.wait(pause_s):
            before_s, began_s = self._asking_s, _cpu_s()
            try:
                self._ask_all()
                self._tell()
            except Exception:  # then triggers look, as they would without
                log.exception("sources could not be asked for input; going on")
            with self._lock:
                self._asking_s += _cpu_s() - began_s
            pause_s = min(MOST_S, max(LEAST_S, (self._asking_s - before_s) / SHARE))
        with self._lock:  # Python waits at its end for what is in a pool: leave nothing
            self._pool.shutdown(wait=False, cancel_futures=True)
        try:
            self._finder.close()
        except Exception as error:  # the JVM may have ended
            log.debug("clients of servers were not closed: %s", first_line(str(error)))

    # -- asking ---------------------------------------------------------------------------------

    def _ask_all(self) -> None:
        """Ask for all that stand at their gates after having found nothing."""
        now_s = self._clock.monotonic()
        with self._lock:
            quiet = [one for one in self._watched.values() if one.quiet and not one.untold]
        due = [one for one in quiet if self._is_due(one, now_s)]
        for one in due:
            if one.asked is not None:
                continue
            one.asked_seq = one.held.seq
            if one.quick:
                one.asked = Future()
                self._answer(one, one.asked)
            else:
                one.asked = self._pool.submit(self._ask, one)
        wait([one.asked for one in due if one.asked is not None], ANSWER_S)
        for one in quiet:
            self._take(one)

    def _is_due(self, one: _Watched, now_s: float) -> bool:
        return one.held.stands(now_s) and now_s - one.held.arrived_s > SETTLED_S

    def _answer(self, one: _Watched, answer: Future[Mark]) -> None:
        try:
            answer.set_result(self._ask(one))
        except Exception as error:
            answer.set_exception(error)

    def _ask(self, one: _Watched) -> Mark:
        sources = self._sources(one)
        before_s = 0.0 if one.quick else _cpu_s()  # of the thread that turns, all is counted
        try:
            return tuple(source.mark() for source in sources)
        finally:
            with self._lock:
                self._asked += 1
                if not one.quick:
                    self._asking_s += IN_JVM * (_cpu_s() - before_s)

    def _take(self, one: _Watched) -> None:
        """Take an answer, if it has come; it counts if no trigger can have begun before it."""
        if one.asked is None or not one.asked.done():
            one.answer = None
            return
        asked, one.asked = one.asked, None
        try:
            mark = asked.result()
        except Exception as error:
            self._take_no_answer(one, error)
            return
        one.why_not = None
        with self._lock:
            held = one.held
            if held.seq == one.asked_seq and held.stands(self._clock.monotonic()):
                one.mark, one.mark_seq = mark, one.asked_seq
                one.answer = None if one.read is None else mark != one.read

    def _take_no_answer(self, one: _Watched, error: Exception) -> None:
        why_not = first_line(str(error))
        if why_not != one.why_not:
            log.info("%s: it is not known what has come: %s", one.name, why_not)
        one.answer, one.why_not, one.untold = None, why_not, isinstance(error, Untold)

    # -- telling --------------------------------------------------------------------------------

    def _tell(self) -> None:
        with self._lock:
            every = list(self._watched.values())
            told = _names(every, False), _names(every, True)
            news, self._news = self._news, False
        now_s = self._clock.monotonic()
        again = any(told) and (news or now_s >= self._told_s + RENEW_S)
        if told != self._told or again:
            self._told, self._told_s = told, now_s
            self._send(Inputs(*told, asked=self._asked, asking_s=self._asking_s))


def _cpu_s() -> float:
    return thread_cpu_s(threading.get_native_id())


def _may_count(one: _Watched) -> bool:
    return one.counts is not False and not one.untold


def _names(watched: Iterable[_Watched], answer: bool) -> tuple[str, ...]:
    return tuple(sorted(one.name for one in watched if one.answer is answer))
