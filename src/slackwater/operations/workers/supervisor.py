"""The supervisor: starts workers, hears their reports, tells them what to run."""

import logging
import os
import queue
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from slackwater import policies
from slackwater.common.subprocesses import child_environment
from slackwater.core.clock import Deadline, RealClock, Timer
from slackwater.core.errors import UsageError
from slackwater.core.protocols import Clock
from slackwater.ipc.framing import ProtocolError
from slackwater.ipc.unix_socket import runtime_dir
from slackwater.operations import fleet_file as config
from slackwater.operations.fleet_file import FleetFile
from slackwater.operations.workers import address
from slackwater.operations.workers.channel import Channel, Message, accept
from slackwater.operations.workers.messages import (
    Ended,
    Hello,
    QueryCost,
    WorkerReport,
    read_from_worker,
)
from slackwater.operations.workers.model import Phase, reported
from slackwater.operations.workers.placement import Directive, Placement, Wanted
from slackwater.operations.workers.processes import WorkerProcesses
from slackwater.operations.workers.relay import relayed
from slackwater.operations.workers.secret import make_token, read_token
from slackwater.quality import QualityController, WarmUps

log = logging.getLogger("slackwater.operations.workers")

PERIOD_S = 0.5
CONTROL_EVERY_S = 2.0
JOIN_S = 60.0  # that workers have to join before queries are placed without them
SILENT_S = 20.0  # a worker of another machine that says nothing for so long counts as dead
RESPAWN_S = 2.0
MOST_STRANGERS = 32  # connections at once that have not shown the token yet


def wanted_of(file: FleetFile) -> list[Wanted]:
    """Return the queries of a fleet file."""
    return [
        Wanted(
            name,
            query.priority,
            query.min_accuracy,
            tuple(query.workers),
            query.task,
            tuple(query.reads),
        )
        for name, query in file.queries.items()
    ]


def _check_cpus(file: FleetFile) -> None:
    """Refuse CPUs that are not here, for workers that are started here."""
    there = os.sched_getaffinity(0)
    for name, section in file.workers.items():
        missing = sorted(set(section.cpus) - there)
        if missing and not section.remote:
            shown = ", ".join(map(str, sorted(there)))
            raise UsageError(
                f"workers.{name}: there is no CPU {missing[0]} here; there are {shown}"
            )


class QueryRow(msgspec.Struct, frozen=True):
    """A query as tables and files of status lines show it."""

    query: str
    phase: Phase
    worker: str | None
    priority: float
    moves: int
    desired: float | None
    warming: bool  # whether a query on its worker is
    accuracy: dict[str, float | None] | None
    rate: float | None
    lag_s: float | None
    cost: QueryCost | None
    error: str | None


class Supervisor:
    """Runs a fleet file on several workers.

    Parameters
    ----------
    path
        Of the fleet file: workers read it themselves.
    clock
        Where time comes from.
    """

    def __init__(self, file: FleetFile, path: Path, clock: Clock = RealClock()) -> None:
        if not file.workers:
            raise UsageError(f"{path}: no workers; add a section [workers.NAME]")
        policies.load(file.policy, **file.parameters)  # a wrong one is told here, not by workers
        _check_cpus(file)
        self.file = file
        self.path = path
        self.name = file.name or "slackwater"
        self._clock = clock
        self._epoch = clock.now()
        make_token(address.token_path(self.name))
        self._token = read_token(address.token_path(self.name))
        self.processes = WorkerProcesses(runtime_dir() / f"{self.name}.workers.json")
        self._changed_ns = path.stat().st_mtime_ns
        self.placement = Placement(
            wanted_of(file),
            QualityController(
                headroom=file.quality.headroom,
                warmups=WarmUps(limit_s=file.quality.warmup),
                patience=file.quality.patience,
            ),
        )
        self._channels: dict[str, Channel] = {}
        self._heard: dict[str, Timer] = {}  # since the last message of a worker
        self._spawned: dict[str, subprocess.Popen[bytes]] = {}
        self._respawn: dict[str, Deadline] = {}  # before which a worker is not started again
        self._inbox: queue.Queue[tuple[str, Message | None]] = queue.Queue()
        self._server = address.listen(self.name, file.listen)
        self._closing = threading.Event()
        self._strangers = threading.Semaphore(MOST_STRANGERS)
        self._next_control = Deadline(0.0, clock)
        threading.Thread(target=self._accept, name="slackwater-accept", daemon=True).start()

    def run(self) -> None:
        """Run until :meth:`stop`."""
        joining = Deadline(JOIN_S, self._clock)
        while not self._closing.is_set():
            try:
                self._turn(joining.passed)
            except Exception:  # the workers go on, and so do we
                log.exception("something is wrong with the supervisor; it goes on")
                self._closing.wait(PERIOD_S)

    def _turn(self, waited: bool) -> None:
        """Run one round; ``waited``: long enough for workers to join."""
        self._keep_workers()
        self._hear()
        if self._complete() or waited:
            self._direct(self.placement.place_all(self._clock.now()))
        if self._next_control.passed:
            self._next_control = Deadline(CONTROL_EVERY_S, self._clock)
            self._reread()
            self._direct(self.placement.control(self._clock.now()))

    def _complete(self) -> bool:
        """Tell whether every worker that lives has said what it runs.

        What runs is not started twice then, and the first to come does not get everything.
        """
        living = [name for name, process in self.processes.by_name.items() if process.alive]
        views = [self.placement.workers.get(name) for name in living]
        return all(view is not None and view.report is not None for view in views)

    def stop(self) -> None:
        """End the loop; also from a signal handler."""
        self._closing.set()

    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for so long, or until it is stopped; return whether it is."""
        return self._closing.wait(seconds)

    def close(self, timeout_s: float = 60.0) -> None:
        """Let the workers stop their queries and end."""
        self._closing.set()
        told = list(self._channels)
        for name in told:
            self._send(name, {"op": "over"})
        deadline = Deadline(timeout_s, self._clock)
        for name, known in list(self.processes.by_name.items()):
            if name in told and not deadline.wait_for(known.has_gone, every_s=0.05):
                log.warning("worker %s did not end; it is killed", name)
            known.end_group()
            self.processes.remove(name)
        for process in self._spawned.values():
            process.poll()
        self._server.close()

    def rows(self) -> list[QueryRow]:
        """Return one row a query, for the table."""
        found = []
        warming = self.placement.warming(self._clock.now())
        for placed in list(self.placement.queries.values()):
            known = reported(placed, self.placement.workers)
            found.append(
                QueryRow(
                    query=placed.wanted.name,
                    phase=placed.phase,
                    worker=placed.worker,
                    priority=placed.wanted.priority,
                    moves=placed.moves,
                    desired=placed.desired,
                    warming=placed.worker in warming,
                    accuracy=known.accuracy,
                    rate=known.rate,
                    lag_s=known.lag_s,
                    cost=known.cost,
                    error=placed.error,
                )
            )
        return found

    def status(self) -> dict[str, Any]:
        """Return everything that is known, for a file of JSON lines."""
        workers = {
            name: {
                "used": None if view.report is None else view.report.used,
                "others": None if view.report is None else view.report.others,
                "cores": view.cores,
            }
            for name, view in list(self.placement.workers.items())
        }
        return {
            "at_s": round(self._clock.now(), 2),
            "workers": workers,
            "queries": [msgspec.to_builtins(row) for row in self.rows()],
            "events": [event._asdict() for event in list(self.placement.events)],
        }

    def _reread(self) -> None:
        """Read the file again: queries may be added and taken from it while the fleet runs."""
        try:
            changed_ns = self.path.stat().st_mtime_ns
            if changed_ns == self._changed_ns:
                return
            self._changed_ns = changed_ns
            file = config.load(self.path)
        except (OSError, UsageError) as error:
            log.warning("the fleet goes on as it is: %s", error)
            return
        self._direct(self.placement.want(wanted_of(file), self._clock.now()))

    # -- workers --------------------------------------------------------------------------------

    def _keep_workers(self) -> None:
        """Start those that are ours to start; see which have died."""
        for name, section in self.file.workers.items():
            process = self.processes.by_name.get(name)
            if process is not None and not process.alive:
                self._bury(name)
                process = None
            silent = name in self._heard and self._heard[name].elapsed_s > SILENT_S
            if section.remote and name in self.placement.workers and silent:
                self._bury(name)
            waited = name not in self._respawn or self._respawn[name].passed
            if process is None and not section.remote and waited:
                self._spawn(name)

    def _spawn(self, name: str) -> None:
        command = [sys.executable, "-m", "slackwater.cli", "worker", name, str(self.path)]
        process = subprocess.Popen(
            command,
            start_new_session=True,  # a group of its own: it outlives us, and is ended as a whole
            stdin=subprocess.DEVNULL,
            env=child_environment(),
        )
        self._spawned[name] = process
        self._respawn[name] = Deadline(RESPAWN_S, self._clock)
        self.processes.add(name, process.pid)

    def _bury(self, name: str) -> None:
        """Clear up after a dead worker.

        Nothing that it started may still write when its queries go on elsewhere.
        """
        process = self.processes.by_name.get(name)
        log.warning("worker %s died", name)
        if process is not None:
            process.end_group()
        if name in self._spawned:
            self._spawned.pop(name).poll()
        self.processes.remove(name)
        channel = self._channels.pop(name, None)
        if channel is not None:
            channel.close()
        self.placement.lost(name)

    # -- the channel ----------------------------------------------------------------------------

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._server.accept()
            except OSError as error:
                if not self._closing.wait(0.2):
                    log.warning("nobody can join now: %s", error)
                continue
            if not self._strangers.acquire(blocking=False):
                connection.close()  # so many that have not shown the token are enough
                continue
            threading.Thread(target=self._welcome, args=(connection,), daemon=True).start()

    def _welcome(self, connection: socket.socket) -> None:
        """Let a worker in; then hear it until it goes."""
        try:
            if not address.is_ours(connection):
                raise ProtocolError("somebody else wanted to join")
            channel = accept(connection, self._token)
            if channel.peer not in self.file.workers:
                raise ProtocolError(f"{channel.peer} is no worker of this fleet")
        except Exception as error:  # whatever a stranger sends
            log.warning("refused: %s", error)
            connection.close()
            return
        finally:
            self._strangers.release()
        before = self._channels.get(channel.peer)
        self._channels[channel.peer] = channel
        if before is not None:
            before.close()
        try:
            while (message := channel.receive()) is not None:
                self._inbox.put((channel.peer, message))
        except (ProtocolError, OSError) as error:
            log.warning("%s is cut off: %s", channel.peer, error)
        channel.close()
        if self._channels.get(channel.peer) is channel:
            del self._channels[channel.peer]

    def _hear(self) -> None:
        """Handle what has come in, for at most one period."""
        deadline = Deadline(PERIOD_S, self._clock)
        while not deadline.passed:
            try:
                worker, message = self._inbox.get(timeout=deadline.left_s)
            except queue.Empty:
                return
            if message is not None:
                self._heard[worker] = Timer(self._clock)
                try:
                    self._handle(worker, message)
                except ProtocolError as error:
                    log.warning("a message of %s is refused: %s", worker, error)

    def _handle(self, worker: str, message: Message) -> None:
        now_s = self._clock.now()
        match read_from_worker(message):
            case Hello(pid, cores):
                if not self.file.workers[worker].remote:
                    self.processes.add(worker, pid)
                self.placement.joined(worker, cores)
            case WorkerReport() as report:
                self._direct(self.placement.reported(worker, report, now_s))
                for each in relayed(self.placement.queries, report.queries):
                    self._send(each.worker, each.message)
            case Ended(query, error, ordered):
                self.placement.ended(worker, query, error, now_s, ordered)

    def _direct(self, directives: list[Directive]) -> None:
        for each in directives:
            message: Message = {"op": each.op, "query": each.query}
            if each.accuracy is not None:
                message.update(accuracy=each.accuracy, least=each.least)
            self._send(each.worker, message)

    def _send(self, worker: str, message: Message) -> None:
        channel = self._channels.get(worker)
        if channel is None:
            return
        try:
            channel.send({**message, "epoch": self._epoch})
        except OSError as error:
            log.info("%s did not hear: %s", worker, error)
