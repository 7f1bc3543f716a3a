"""What a fleet over Spark Connect makes of what its server tells; the server is pretended."""

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'slackwater[connect]'")

from pyspark.sql.streaming.listener import StreamingQueryListener

from slackwater.core.errors import UsageError
from slackwater.core.windows import Deadlines
from slackwater.engines.spark import connect
from slackwater.engines.spark.connect import ConnectFleet
from slackwater.engines.spark.control.service import ControllerSettings, ControllerThread
from slackwater.engines.spark.gates import source as source_gate
from slackwater.engines.spark.queries.record import State
from slackwater.ipc.client import ask
from slackwater.ipc.questions import AskStatus, Status
from tests.engines.spark.connect_pretence import Session
from tests.waiting import eventually


class Frame:
    isStreaming = True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.sock"


@pytest.fixture
def controller(path: Path) -> Iterator[ControllerThread]:
    running = ControllerThread(ControllerSettings(str(path), "fcfs", slots=3))
    yield running
    running.close()


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def fleet(
    controller: ControllerThread, path: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ConnectFleet]:
    monkeypatch.setattr(source_gate, "gate", lambda spark, df, **options: df)
    spark: Any = session
    made = ConnectFleet(spark, "ads", socket=path)
    yield made
    session.client.gone, session.client.late = False, False
    made.stop()


def gate(fleet: ConnectFleet, name: str = "q") -> None:
    frame: Any = Frame()
    fleet.gate(frame, name, deadlines=Deadlines())


def record(fleet: ConnectFleet, name: str = "q") -> Any:
    return fleet._registry.get(name)


def known(path: Path) -> set[str]:
    return {entry.spec.name for entry in ask(path, AskStatus(), Status).queries}


def another_run(number: int) -> str:
    """Return a run that nobody has told the fleet about."""
    return str(uuid.UUID(int=number))


def ends(act: Callable[[], None]) -> None:
    """Do something that must not hang."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it hangs"
    assert not failures, failures


# -- runs -----------------------------------------------------------------------------------------


def test_a_query_is_declared_until_it_is_started(fleet: ConnectFleet, session: Session) -> None:
    gate(fleet)
    assert record(fleet).state is State.DECLARED
    run = session.start("q")
    assert (record(fleet).state, record(fleet).run) == (State.ACTIVE, run)
    with pytest.raises(UsageError, match="already"):
        gate(fleet)
    session.stop(run)
    eventually(lambda: record(fleet).state is State.STOPPED)
    gate(fleet)
    assert record(fleet).state is State.DECLARED


def test_the_controller_knows_those_that_are_there(
    fleet: ConnectFleet, session: Session, path: Path
) -> None:
    gate(fleet, "a")
    gate(fleet, "b")
    eventually(lambda: known(path) == {"a", "b"})
    session.stop(session.start("a"))
    eventually(lambda: known(path) == {"b"})


def test_a_name_is_free_as_soon_as_its_query_was_stopped(
    fleet: ConnectFleet, session: Session
) -> None:
    gate(fleet)
    first = session.start("q")
    session.client.late = True
    session.stop(first)
    gate(fleet)
    assert record(fleet).state is State.DECLARED
    second = session.start("q")
    assert record(fleet).run == second


def test_what_is_heard_late_of_an_earlier_run_changes_nothing(
    fleet: ConnectFleet, session: Session, path: Path
) -> None:
    gate(fleet)
    first = session.start("q")
    session.stop(first)
    gate(fleet)
    second = session.start("q")
    unheard = another_run(7)  # a run before there was a fleet
    for run in (first, unheard):
        session.progress("q", run)
    session.progress("q", second)
    gate(fleet, "last")
    last = session.start("last")
    session.stop(last)
    eventually(lambda: record(fleet, "last").state is State.STOPPED)  # all has been heard
    assert (record(fleet).run, record(fleet).state) == (second, State.ACTIVE)
    assert "q" in known(path)


def test_a_query_that_another_client_starts_is_known_by_its_progress(
    fleet: ConnectFleet, session: Session
) -> None:
    gate(fleet)
    run = another_run(8)
    session.progress("q", run)
    eventually(lambda: record(fleet).run == run)
    assert record(fleet).state is State.ACTIVE


# -- without a controller or a server ----------------------------------------------------------


def test_the_status_of_a_fleet_whose_controller_has_gone(
    fleet: ConnectFleet, session: Session, controller: ControllerThread, path: Path
) -> None:
    gate(fleet)
    session.start("q")
    status = fleet.status()
    assert (status.policy, status.slots, status.controller) == ("fcfs", 3, "running")
    controller.close()
    eventually(lambda: fleet.status().controller == "off: queries run as plain Spark")
    status = fleet.status()
    assert (status.policy, status.slots) == ("fcfs", 3)
    assert [query.state for query in status.queries] == ["running"]


def test_one_that_does_not_stop_does_not_keep_the_others(
    fleet: ConnectFleet, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b", "c"):
        gate(fleet, name)
    runs = {name: session.start(name) for name in ("a", "b", "c")}
    session.client.unstoppable = {runs["a"], runs["b"]}
    ends(fleet.stop)
    assert set(session.client.active) == session.client.unstoppable
    assert "a did not stop cleanly: its sink does not end" in caplog.text
    assert session.streams._sqlb._listener_bus == []


def test_a_server_that_does_not_answer_is_not_waited_for(
    fleet: ConnectFleet,
    session: Session,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connect, "ACTIVE_S", 0.1)
    gate(fleet)
    session.start("q")
    answers = threading.Event()
    session.client.before_active = lambda: print(answers.wait(30))
    ends(fleet.stop)
    answers.set()
    assert "no query was stopped: no answer within 0.1 s" in caplog.text


@pytest.mark.filterwarnings("ignore:Failed to remove the listener")
def test_a_server_that_is_gone_does_not_hide_the_user_s_error(
    fleet: ConnectFleet,
    session: Session,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connect, "REMOVAL_S", 0.1)
    gate(fleet)
    session.start("q")
    session.client.gone = True
    with pytest.raises(ValueError, match="the user's own"), fleet:
        raise ValueError("the user's own")
    assert "no query was stopped: failed to connect" in caplog.text
    assert not fleet._link._thread.is_alive()


# -- the end --------------------------------------------------------------------------------------


def test_the_ends_of_queries_are_heard_before_the_fleet_has_gone(
    fleet: ConnectFleet, session: Session, path: Path
) -> None:
    gate(fleet)
    session.start("q")
    hearing = session.hearing()
    ends(fleet.stop)
    assert record(fleet).state is State.STOPPED
    assert hearing is not None
    assert not hearing.is_alive()
    assert known(path) == set()


def test_events_on_their_way_do_not_keep_a_fleet_from_its_end(
    fleet: ConnectFleet, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ends that come late, and progress of a query that is none of the fleet's."""
    monkeypatch.setattr(connect, "ENDS_S", 0.1)
    gate(fleet)
    session.start("q")
    hearing = session.hearing()
    session.client.late = True
    session.client.at_removal = lambda: session.progress("other", another_run(6))
    ends(fleet.stop)
    assert hearing is not None
    hearing.join(20)
    assert not hearing.is_alive(), "Python would wait for it"
    assert session.streams._sqlb._listener_bus == []


def test_a_server_that_keeps_the_listener_is_not_waited_for(
    fleet: ConnectFleet, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "REMOVAL_S", 0.1)
    answers = threading.Event()
    session.client.at_removal = lambda: print(answers.wait(30))
    ends(fleet.stop)
    answers.set()
    eventually(lambda: session.streams._sqlb._listener_bus == [])


def test_another_listener_of_the_session_goes_on_hearing(
    fleet: ConnectFleet, session: Session
) -> None:
    heard: list[str] = []

    class Other(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None: ...
        def onQueryTerminated(self, event: Any) -> None: ...
        def onQueryProgress(self, event: Any) -> None:
            heard.append(event.progress.name)

    other = Other()
    session.streams._sqlb.append(other)
    ends(fleet.stop)
    session.progress("theirs", another_run(9))
    eventually(lambda: heard == ["theirs"])
    ends(lambda: session.streams.removeListener(other))
