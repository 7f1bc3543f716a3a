"""Controller and gates over the real socket, without Spark."""

import os
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slackwater.core import (
    Admission,
    Deadlines,
    InputStream,
    QuerySpec,
    QueryState,
    RealClock,
    SlackwaterError,
    Snapshot,
    Window,
)
from slackwater.core.model import Outlook, Sweep
from slackwater.engines.spark.control.driver import GateDriver, QueryStore
from slackwater.engines.spark.control.guard import Guard
from slackwater.engines.spark.control.process import ControllerProcess
from slackwater.engines.spark.control.service import (
    ControllerService,
    ControllerSettings,
    ControllerThread,
)
from slackwater.ipc.client import Link, Refused, answers, ask
from slackwater.ipc.framing import MAX_LINE
from slackwater.ipc.messages import (
    INPUTS_LAST_S,
    Arrive,
    Command,
    Done,
    Gone,
    Grant,
    History,
    Inputs,
    InSinks,
    MemoryUse,
    Note,
    Notes,
    Progress,
    Told,
    spec_message,
)
from slackwater.ipc.progress import Durations, EventTime, QueryProgress
from slackwater.ipc.questions import (
    AskDecisions,
    AskStatus,
    AskWatch,
    Control,
    Controlled,
    Decisions,
    Failure,
    ResultEvent,
    Status,
    Watched,
)
from slackwater.ipc.server import Client
from slackwater.ipc.unix_socket import runtime_dir
from slackwater.policies import Policy
from slackwater.policies.klink_paper import KlinkPaper
from tests.waiting import eventually


class Gate:
    """A gate at the end of a real link, that keeps what it is told."""

    def __init__(self, path: Path) -> None:
        self.grants: list[tuple[str, int]] = []
        self.lease: list[bool] = []
        self.commands: list[Command] = []
        self.link = Link(path, self._on_grant, self.lease.append, self.commands.append)
        self.link.start()

    def _on_grant(self, grant: Grant) -> None:
        self.grants.append((grant.query, grant.seq))

    def arrive(self, query: str, seq: int = 1) -> None:
        self.link.send(Arrive(query, seq))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.sock"


@pytest.fixture
def controller(path: Path) -> Iterator[ControllerThread]:
    running = ControllerThread(ControllerSettings(str(path), "fcfs", slots=1))
    yield running
    running.close()


@pytest.fixture
def gate(path: Path, controller: ControllerThread) -> Iterator[Gate]:
    made = Gate(path)
    assert made.link.wait_held(20)
    yield made
    made.link.close()


def status(path: Path) -> Status:
    return ask(path, AskStatus(), Status)


def decisions(path: Path) -> Decisions:
    return ask(path, AskDecisions(), Decisions)


def watched(path: Path, **known: int) -> Watched:
    return ask(path, AskWatch(**known), Watched)


def control(path: Path, action: str, **details: str) -> Controlled:
    return ask(path, Control(action=action, **details), Controlled)


def now_text() -> str:
    """Return this moment as Spark writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def phases(path: Path) -> dict[str, str]:
    return {query.spec.name: query.phase for query in status(path).queries}


def test_one_slot_one_grant_until_the_batch_is_done(path: Path, gate: Gate) -> None:
    gate.arrive("a")
    eventually(lambda: gate.grants == [("a", 1)])
    gate.arrive("b")
    eventually(lambda: phases(path) == {"a": "running", "b": "waiting"})
    assert gate.grants == [("a", 1)]
    gate.link.send(Done("a"))
    eventually(lambda: gate.grants == [("a", 1), ("b", 1)])
    gate.arrive("a", 2)  # arriving again also means that the batch before has ended
    gate.arrive("b", 2)
    eventually(lambda: ("b", 2) in gate.grants or ("a", 2) in gate.grants)


def test_a_paced_query_waits_and_holds_nobody_up(path: Path, gate: Gate) -> None:
    """It has a slot for itself, but must not begin its next batch so soon."""
    gate.link.send(spec_message(QuerySpec("paced", max_wait_s=100.0, pace_s=1.0)))
    before_s = time.monotonic()
    gate.arrive("paced", 1)
    eventually(lambda: gate.grants == [("paced", 1)])
    gate.link.send(Done("paced"))
    gate.arrive("paced", 2)
    gate.arrive("other", 1)
    eventually(lambda: ("other", 1) in gate.grants)
    gate.link.send(Done("other"))
    eventually(lambda: ("paced", 2) in gate.grants)
    assert time.monotonic() - before_s > 0.99


def test_a_query_that_goes_frees_its_slot(path: Path, gate: Gate) -> None:
    gate.arrive("a")
    eventually(lambda: bool(gate.grants))
    gate.arrive("b")
    gate.link.send(Gone("a"))
    eventually(lambda: ("b", 1) in gate.grants)
    assert "a" not in phases(path)


def test_a_gate_that_dies_frees_its_slot(path: Path, gate: Gate) -> None:
    other = Gate(path)
    assert other.link.wait_held(20)
    other.arrive("a")
    eventually(lambda: bool(other.grants))
    gate.arrive("b")
    other.link.close()
    eventually(lambda: gate.grants == [("b", 1)])


def test_specifications_and_progress_reach_the_controller(path: Path, gate: Gate) -> None:
    gate.link.send(spec_message(QuerySpec("a", priority=3.0, max_wait_s=7.0)))
    progress = QueryProgress(
        "2026-01-01T00:00:00.000Z",
        500,
        Durations(add_batch=150, trigger_execution=250),
        EventTime(max="2025-12-31T23:59:59.500Z"),
    )
    gate.link.send(Progress("a", progress))
    eventually(lambda: status(path).queries[0].metrics.batches == 1)
    query = status(path).queries[0]
    assert query.spec.priority == 3.0
    assert query.metrics.frontier_lag_s == pytest.approx(0.5)


def test_what_another_part_of_a_query_tells_outlasts_its_own_progress(
    path: Path, gate: Gate
) -> None:
    gate.link.send(Told("a", Sweep(3.0, 3.4), Outlook(0.5, 1e-5)))
    gate.arrive("a")

    def heard() -> bool:
        (query,) = status(path).queries
        return (query.metrics.sweep, query.metrics.beyond) == ((3.0, 3.4), (0.5, 1e-5))

    eventually(heard)


def test_explain_tells_why(path: Path, gate: Gate) -> None:
    gate.arrive("a")
    eventually(lambda: len(decisions(path)) == 1)
    decision = decisions(path)[0]
    assert decision.query == "a"
    assert decision.reason.startswith("first at the gate")


def test_a_query_that_is_held_says_why(path: Path, gate: Gate) -> None:
    gate.arrive("a")
    eventually(lambda: gate.grants == [("a", 1)])
    gate.arrive("b")
    eventually(lambda: phases(path) == {"a": "running", "b": "waiting"})
    assert {q.spec.name: q.waits for q in status(path).queries} == {"a": None, "b": "no slot free"}
    assert {q.name: q.waits for q in watched(path).queries} == {"a": None, "b": "no slot free"}


def test_kept_and_broken_promises_are_told(path: Path, gate: Gate) -> None:
    gate.link.send(spec_message(QuerySpec("a", target_s=60.0)))
    gate.link.send(spec_message(QuerySpec("b", target_s=1e-6)))
    gate.link.send(spec_message(QuerySpec("c")))
    for name in "abc":
        for seq in (1, 2, 3):
            gate.arrive(name, seq)
            eventually(lambda: (name, seq) in gate.grants)  # noqa: B023
        took = Durations(add_batch=9, trigger_execution=9)
        gate.link.send(Progress(name, QueryProgress(now_text(), 5, took)))
        gate.link.send(Done(name))
    wanted = {"a": (1, 0), "b": (0, 1), "c": (None, None)}

    def told() -> bool:
        answers = {q.spec.name: (q.kept, q.broken) for q in status(path).queries}
        return answers == wanted == {q.name: (q.kept, q.broken) for q in watched(path).queries}

    eventually(told)


def test_off_opens_and_on_holds_again(path: Path, gate: Gate) -> None:
    control(path, "off")
    eventually(lambda: not gate.link.held)
    control(path, "on")
    eventually(lambda: gate.link.held)


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\n",
        b'{"op": "arrive"}\n',
        b"[]\n",
        b'{"op": "progress", "query": "a"}\n',
        b"\x00\xff\n",
    ],
)
def test_garbage_ends_that_connection_only(path: Path, gate: Gate, garbage: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(20)
        stranger.connect(str(path))
        stranger.sendall(garbage)
        while stranger.recv(4096):
            pass  # beats until it is dropped
    gate.arrive("a")
    eventually(lambda: gate.grants == [("a", 1)])


def test_an_endless_message_is_cut_off(path: Path, gate: Gate) -> None:
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.settimeout(20)
        stranger.connect(str(path))
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            stranger.sendall(b"x" * (3 * MAX_LINE))
    gate.arrive("a")
    eventually(lambda: gate.grants == [("a", 1)])


def test_the_socket_is_for_this_user_only(path: Path, controller: ControllerThread) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_folder_of_sockets_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(tmp_path))
    assert stat.S_IMODE(runtime_dir().stat().st_mode) == 0o700
    runtime_dir().chmod(0o755)
    with pytest.raises(SlackwaterError, match="mode 0700"):
        runtime_dir()


def test_nobody_there_is_one_clear_line(path: Path) -> None:
    with pytest.raises(SlackwaterError, match="no controller answers"):
        status(path)


def test_a_dry_run_holds_nothing_but_decides(path: Path) -> None:
    running = ControllerThread(ControllerSettings(str(path), "fcfs", slots=1, dry_run=True))
    gate = Gate(path)
    try:
        assert status(path).open

        def decided() -> bool:
            gate.arrive("a")  # what is sent before the link stands is lost
            return bool(decisions(path))

        eventually(decided)
        assert gate.lease == []  # never held
        assert not any(decision.enforced for decision in decisions(path))
    finally:
        gate.link.close()
        running.close()


# -- the controller as a process: what happens when it ends or hangs ------------------------------


@pytest.fixture
def process(path: Path) -> Iterator[ControllerProcess]:
    running = ControllerProcess(ControllerSettings(str(path), "fcfs", slots=1))
    yield running
    running.close()


def test_a_killed_controller_opens_the_gates_and_comes_back(
    path: Path, process: ControllerProcess
) -> None:
    gate = Gate(path)
    assert gate.link.wait_held(20)
    before = len(gate.lease)
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: False in gate.lease[before:])
    eventually(lambda: gate.lease[-1])
    gate.arrive("a")
    eventually(lambda: gate.grants == [("a", 1)])
    gate.link.close()


def test_a_hanging_controller_loses_the_lease(path: Path, process: ControllerProcess) -> None:
    gate = Gate(path)
    assert gate.link.wait_held(20)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        eventually(lambda: not gate.link.held)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    eventually(lambda: gate.link.held)
    gate.link.close()


def test_after_two_crashes_it_stays_off(path: Path, process: ControllerProcess) -> None:
    gate = Gate(path)
    assert gate.link.wait_held(20)
    first = process.pid
    os.kill(first, signal.SIGKILL)
    eventually(lambda: process.pid != first)
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: process.given_up)
    assert not gate.link.wait_held(0) or gate.lease[-1] is False
    gate.link.close()


def test_it_ends_with_its_driver(path: Path) -> None:
    running = ControllerProcess(ControllerSettings(str(path), "fcfs", slots=1))
    ended = threading.Event()
    waiter = threading.Thread(target=lambda: (running._process.wait(), ended.set()))
    waiter.start()
    eventually(path.exists)
    running.close()
    assert ended.wait(30)
    waiter.join()
    assert not path.exists()


def progress_at(second: int, watermark: float) -> QueryProgress:
    """A batch of 0.25 s that ran with a watermark so many seconds after the epoch."""
    return QueryProgress(
        f"1970-01-01T00:00:{second:02d}.000Z",
        100,
        Durations(add_batch=150, trigger_execution=250),
        EventTime(watermark=f"1970-01-01T00:00:{watermark:06.3f}Z"),
    )


def test_who_watches_is_told_once_what_happened(path: Path, gate: Gate) -> None:
    window = Window("tumbling", 3.0, 3.0)
    deadlines = Deadlines((window,), (InputStream("ads", "at", 0.5),))
    gate.link.send(spec_message(QuerySpec("a", deadlines=deadlines, target_s=2.0)))
    gate.link.send(Notes("ads", notes={"a": Note(gate="clock")}))
    gate.arrive("a")
    eventually(lambda: bool(gate.grants))
    for second, watermark in ((4, 2.9), (5, 3.1)):
        gate.link.send(Progress("a", progress_at(second, watermark)))
    eventually(lambda: watched(path).happened == 3)
    seen = watched(path)
    assert len(seen.events) == 3
    assert seen.events[-1] == ResultEvent("a", end_s=3.0, latency_s=pytest.approx(2.25))
    assert [decision.query for decision in seen.decisions] == ["a"]
    assert seen.app_name == "ads"
    assert seen.policy == "fcfs"
    assert seen.queries[0].target_s == 2.0
    assert seen.outlook["a"].window_end_s == 6.0  # though the policy itself does not look
    again = watched(path, happened=seen.happened, decided=seen.decided)
    assert (again.events, again.decisions) == ((), ())


def test_the_policy_can_be_switched_while_queries_run(path: Path, gate: Gate) -> None:
    with pytest.raises(Refused, match="unknown policy"):
        control(path, "policy", policy="kling")
    control(path, "policy", policy="spark")
    eventually(lambda: not gate.link.held)
    control(path, "policy", policy="klink")
    eventually(lambda: gate.link.held)
    gate.arrive("a")
    eventually(lambda: gate.grants == [("a", 1)])
    assert watched(path).policy == "klink"


def test_the_fleet_hears_what_concerns_it(path: Path, gate: Gate) -> None:
    control(path, "pause", query="a")
    eventually(lambda: [c.query for c in gate.commands if c.action == "pause"] == ["a"])
    with pytest.raises(Refused, match="unknown action"):
        control(path, "explode")


def test_a_batch_that_waits_for_its_sink_gives_its_slot_back(path: Path, gate: Gate) -> None:
    gate.arrive("slow")
    eventually(lambda: gate.grants == [("slow", 1)])
    gate.arrive("other")
    eventually(lambda: phases(path) == {"slow": "running", "other": "waiting"})
    gate.link.send(InSinks(("slow",)))
    eventually(lambda: gate.grants == [("slow", 1), ("other", 1)])
    assert {q.spec.name: q.in_sink for q in status(path).queries} == {"slow": True, "other": False}
    gate.arrive("slow", 2)  # it has come back, and waits for a slot as anyone
    eventually(lambda: phases(path) == {"slow": "waiting", "other": "running"})
    assert not any(q.in_sink for q in status(path).queries)


def test_nobody_is_called_before_a_link_is_started(path: Path) -> None:
    """Who makes it may have more to make."""
    controller = ControllerThread(ControllerSettings(str(path), "fcfs", slots=1))
    made: list[str] = []
    link = Link(path, lambda grant: None, lambda holds: made.append("told"))
    try:
        eventually(lambda: answers(path))
        assert not link.wait_held(0.1)
        made.append("all is there")
        link.start()
        assert link.wait_held(20)
        assert made == ["all is there", "told"]
    finally:
        link.close()
        controller.close()


def test_a_link_that_was_never_started_can_be_closed(path: Path) -> None:
    Link(path, lambda grant: None, lambda holds: None).close()


def test_slots_follow_the_cores_that_there_are(path: Path, gate: Gate) -> None:
    gate.link.send(MemoryUse(used=1, limit=10, executors=5, cores=4))
    gate.arrive("a")
    eventually(lambda: status(path).slots == 6)


def test_gates_are_told_how_long_the_load_asks_them_to_hold(path: Path) -> None:
    controller = ControllerThread(ControllerSettings(str(path), "fcfs", slots=5))
    told: list[float] = []
    link = Link(path, lambda grant: None, lambda holds: None, on_hold=told.append)
    link.start()
    try:
        assert link.wait_held(20)
        slow = QueryProgress("2026-01-01T00:00:00.000Z", 5, Durations(9000, trigger_execution=9000))
        for number in range(5):
            link.send(Arrive(f"q{number}", 1), Progress(f"q{number}", slow))
        eventually(lambda: bool(told) and told[-1] >= 9.0)
    finally:
        link.close()
        controller.close()


def test_a_new_controller_learns_costs_from_the_gates(path: Path, gate: Gate) -> None:
    batches = tuple(progress_at(second, 1.0) for second in range(1, 6))
    gate.link.send(History("a", batches))
    eventually(lambda: bool(status(path).queries))
    metrics = status(path).queries[0].metrics
    assert (metrics.batches, metrics.batch_fixed_s) == (5, pytest.approx(0.25))
    gate.link.send(History("a", batches))  # the lease was lost for a moment only
    gate.arrive("b")
    eventually(lambda: "b" in phases(path))
    assert status(path).queries[0].metrics.batches == 5


def test_a_policy_switch_keeps_the_parameters_that_fit(path: Path) -> None:
    settings = ControllerSettings(str(path), "klink", parameters={"confidence": 0.5, "seed": 7})
    service = ControllerService(settings, lambda: 0.0)
    try:
        for name in ("fcfs", "klink-paper"):
            assert isinstance(service._control(Control(action="policy", policy=name)), Controlled)
        policy = service.controller.policy
        assert isinstance(policy, KlinkPaper)
        assert (policy.seed, policy._estimator.keywords["confidence"]) == (7, 0.5)
    finally:
        service.driver.close()


class Fussy(Policy):
    """Cannot be made, and says so in its own way."""

    name = "fussy"

    def __init__(self) -> None:
        raise ValueError("not today")

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return ()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("math:pi", "math:pi is not a policy: derive it from slackwater.policies.Policy"),
        (f"{__name__}:Fussy", f"policy {__name__}:Fussy: ValueError: not today"),
    ],
)
def test_a_policy_that_is_none_does_not_end_the_controller(path: Path, name: str, why: str) -> None:
    service = ControllerService(ControllerSettings(str(path), "fcfs"), lambda: 0.0)
    try:
        assert service._control(Control(action="policy", policy=name)) == Failure(why)
        assert service.controller.policy.name == "fcfs"
    finally:
        service.driver.close()


def test_gates_that_open_by_themselves_are_counted(path: Path, gate: Gate) -> None:
    gate.arrive("a")
    eventually(lambda: gate.grants == [("a", 1)])
    gate.arrive("b", 1)
    gate.arrive("b", 2)  # its first trigger has gone on without a grant
    eventually(lambda: watched(path).opened == 1)


def test_the_guard_hears_of_gates_that_open_by_themselves(path: Path) -> None:
    heard: list[str] = []

    class Heard(Guard):
        def gate_opened(self, query: str, now_s: float) -> None:
            heard.append(query)

    driver = GateDriver(path, RealClock(), 1, guard=Heard(2, lambda: 0.0))
    one, other = socket.socketpair()
    with one, other:
        gate = Client(one)
        for number in (1, 2):
            driver.received(gate, Arrive("a", number))
    driver.close()
    assert heard == ["a"]


class TestInputs:
    """What sources tell of queries at their gates."""

    @pytest.fixture
    def gate(self) -> Iterator[Client]:
        one, other = socket.socketpair()
        with one, other:
            yield Client(one)

    @pytest.fixture
    def store(self, gate: Client) -> QueryStore:
        store = QueryStore()
        for name in ("a", "b", "c"):
            store.hear(Arrive(name, 1), gate, 1.0)
        return store

    def told(self, store: QueryStore) -> dict[str, bool | None]:
        return {name: query.state.has_input for name, query in store.queries.items()}

    def test_each_query_is_told_of(self, store: QueryStore, gate: Client) -> None:
        inputs = Inputs(empty=("a",), filled=("b",))
        assert store.hear(inputs, gate, 2.0), "a decision is due"
        assert self.told(store) == {"a": False, "b": True, "c": None}
        assert not store.hear(inputs, gate, 3.0), "that is nothing new"
        assert store.hear(Inputs(filled=("a",)), gate, 4.0)
        assert self.told(store) == {"a": True, "b": None, "c": None}

    def test_a_trigger_that_ended_may_have_read_it(self, store: QueryStore, gate: Client) -> None:
        store.hear(Inputs(filled=("a", "b")), gate, 2.0)
        for name in ("a", "b"):
            store.queries[name].enter("running", 3.0)
        store.hear(Arrive("a", 2), gate, 4.0)
        store.hear(Arrive("b", 2, again=True), gate, 4.0)  # it went on waiting
        assert self.told(store) == {"a": None, "b": True, "c": None}

    def test_who_falls_silent_is_believed_no_more(self, store: QueryStore, gate: Client) -> None:
        store.hear(Inputs(empty=("a",)), gate, 2.0)
        later_s = 2.0 + INPUTS_LAST_S
        assert not store.hear(MemoryUse(1, 2, 0), gate, later_s - 1)
        assert self.told(store)["a"] is False
        assert store.hear(MemoryUse(1, 2, 0), gate, later_s), "a decision is due"
        assert self.told(store)["a"] is None

    def test_another_gate_has_queries_of_its_own(self, store: QueryStore, gate: Client) -> None:
        one, other = socket.socketpair()
        with one, other:
            store.hear(Inputs(empty=("a",)), Client(one), 2.0)
        assert self.told(store)["a"] is None
