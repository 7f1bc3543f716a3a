"""What a grant does to a run that waits for it, without Spark."""

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.core.clock import VirtualClock
from slackwater.engines.spark.gates.watermark import WatermarkRaise
from slackwater.engines.spark.queries.granting import Granter
from slackwater.engines.spark.queries.held import Held
from slackwater.engines.spark.queries.held_runs import HeldRuns
from slackwater.engines.spark.queries.record import QueryRecord
from slackwater.engines.spark.sources.remote_frontier import FrontierLost
from slackwater.ipc.messages import Grant
from tests.engines.spark.queries.test_held import held, needed

RECORD: Any = SimpleNamespace(name="q", run="r")


def no_limits(query: str, rows: int | None) -> None:
    """Take a limit, and do nothing."""


class InPlace(Executor):
    """Does at once what it is given, and keeps the error to itself, as a pool does."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


class Fleet:
    """One run that waits at its gate, and who lets it go on."""

    def __init__(
        self, newest_us: Callable[[], int | None], set_rows: Callable[..., None] = no_limits
    ) -> None:
        self.grants = 0
        self.again: list[str] = []
        self.changes: list[dict[str, object]] = []
        self.clock = clock = VirtualClock()
        self.run = self._gated(newest_us)
        runs = HeldRuns(clock)
        runs.hold_all()
        runs.add("r", self.run)
        runs.arrive("r")
        registry: Any = SimpleNamespace(update=self._update)
        row_limits: Any = SimpleNamespace(set_rows=set_rows)
        self.granter = Granter(runs, registry, row_limits, InPlace(), self._wait_on, clock)

    def _gated(self, newest_us: Callable[[], int | None]) -> Held:
        run = held(newest_us)
        gate: Any = run.gate
        gate.grant, gate.close = self._grant, lambda bound_s: None
        return run

    def _grant(self) -> None:
        self.grants += 1

    def _wait_on(self, name: str, run: Held) -> None:
        self.again.append(name)

    def _update(self, name: str, **changes: object) -> None:
        self.changes.append(changes)


def grant(fleet: Fleet, record: QueryRecord = RECORD, *, seq: int = 1) -> None:
    fleet.granter.grant(record, Grant("q", seq, watermark_ms=needed().watermark_ms))


def test_a_grant_lets_go_on_once() -> None:
    fleet = Fleet(lambda: 61_000_000)
    grant(fleet)
    grant(fleet)
    assert (fleet.grants, fleet.run.view.watermark_ms) == (1, 61_000)


@pytest.mark.parametrize(("seq", "run"), [(0, "r"), (2, "r"), (1, "another"), (1, None)])
def test_a_stale_grant_lets_nobody_go_on(seq: int, run: str | None) -> None:
    fleet, record = Fleet(lambda: 61_000_000), SimpleNamespace(name="q", run=run)
    grant(fleet, record, seq=seq)  # type: ignore[arg-type]
    assert (fleet.grants, fleet.run.waiting) == (0, True)


def test_who_comes_too_early_waits_on() -> None:
    fleet = Fleet(lambda: 59_000_000)
    grant(fleet)
    assert (fleet.grants, fleet.again) == (0, ["q"])


def test_a_watermark_that_cannot_be_raised_is_left_to_spark() -> None:
    fleet = Fleet(lambda: 61_000_000)
    view: Any = fleet.run.view

    def refuse(to_ms: int) -> None:
        raise RuntimeError("no such field")

    view.raise_watermark = refuse
    grant(fleet)
    assert (fleet.grants, fleet.run.raises) == (1, None)
    assert fleet.changes == [{"run": "r", "one_batch": False, "why_two_batches": "no such field"}]


def test_an_input_that_will_not_tell_any_more_holds_nobody_up() -> None:
    fleet = Fleet(lost)
    grant(fleet)
    assert (fleet.grants, fleet.again) == (1, [])
    assert fleet.run.raises is not None, "silent inputs follow the clock"
    assert fleet.changes == [{"run": "r", "one_batch": False, "why_two_batches": "too many files"}]
    fleet.granter.let_go_on(RECORD, fleet.run, Grant("q", 1))
    assert len(fleet.changes) == 1, "it is told once"


def lost() -> int:
    raise FrontierLost("too many files")


@pytest.mark.parametrize(
    ("occupied", "waited_s", "seq", "grants"),
    [(False, 1.0, 1, 1), (True, 9.0, 1, 1), (False, 1.0, 2, 0)],
)
def test_who_may_have_gone_on_has_its_permit_all_the_same(
    occupied: bool, waited_s: float, seq: int, grants: int
) -> None:
    """On a busy machine it has told that it is there, and comes to wait later than one looks."""
    fleet = Fleet(lambda: 61_000_000)
    gate: Any = fleet.run.gate
    gate.occupied, fleet.run.seq = occupied, seq
    fleet.clock.sleep(waited_s)
    fleet.granter.let_go_on(RECORD, fleet.run, needed())
    assert fleet.grants == grants
    assert fleet.run.view.watermark_ms == 50_000  # a batch may be running


def full(query: str, rows: int | None) -> None:
    raise OSError("no space left")


def test_a_limit_that_cannot_be_lifted_leaves_the_watermark_where_it_is() -> None:
    """Its gate may open by itself: that batch would not read what the watermark goes by."""
    fleet = Fleet(lambda: 61_000_000, full)
    with pytest.raises(OSError, match="no space"):
        fleet.granter.let_go_on(RECORD, fleet.run, needed())
    assert (fleet.grants, fleet.run.view.watermark_ms) == (0, 50_000)


def test_what_fails_in_another_thread_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WatermarkRaise, "takes_time", True)
    caplog.set_level(logging.ERROR)
    fleet = Fleet(lambda: 61_000_000, full)
    grant(fleet)
    assert fleet.grants == 0
    assert "q could not be let go on" in caplog.text
