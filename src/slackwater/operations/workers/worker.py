"""A worker: one Spark application that runs the queries it is told to."""

import fcntl
import hashlib
import logging
import os
import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from slackwater.common.exceptions import first_line
from slackwater.common.places import local_path
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.session.addresses import address_of
from slackwater.ipc.framing import ProtocolError
from slackwater.ipc.unix_socket import runtime_dir
from slackwater.operations import fleet_file as config
from slackwater.operations.fleet_file import FleetFile
from slackwater.operations.launch import Launch, quality_settings
from slackwater.operations.workers import address
from slackwater.operations.workers.channel import Channel, Message, join
from slackwater.operations.workers.secret import read_token

log = logging.getLogger("slackwater.operations.workers")

REPORT_EVERY_S = 1.0
RECONNECT_S = 0.5
LOCK = "slackwater.lock"  # beside a checkpoint's other files


class Worker:
    """Hosts queries of a fleet file.

    If the supervisor goes away, queries go on, and the worker waits for it to come back.

    Parameters
    ----------
    path
        Of the file: queries may be added to it later.
    name
        Of the worker, as in the file's section ``[workers.NAME]``.
    connect_to
        ``host:port`` of the supervisor; None: the fleet's Unix socket.
    """

    def __init__(
        self, file: FleetFile, path: Path, name: str, connect_to: str | None = None
    ) -> None:
        self._path = path
        section = file.workers.get(name)
        if section is None:
            known = ", ".join(file.workers) or "none"
            raise UsageError(f"the file has no worker {name!r}; it has: {known}")
        self.fleet_name = file.name or "slackwater"
        self.name = name
        self._token = read_token(address.token_path(self.fleet_name))
        self._connect_to = connect_to or file.listen
        self._forwards = file.forwarding
        self._cpus = frozenset(section.cpus)
        if self._cpus:
            os.sched_setaffinity(0, self._cpus)  # Spark's processes inherit it
        self._cores = section.cores or float(len(self._cpus) or os.cpu_count() or 1)
        quality = replace(
            quality_settings(file.quality),
            pauses=False,
            watches_all=True,
            cpus=self._cpus,
            cores=section.cores,
        )
        self._launch = Launch(_for_worker(file, self._cores), path.parent, quality=quality)
        self._orders: queue.Queue[Message] = queue.Queue()
        self._locks: dict[str, int] = {}  # descriptors, by query
        self._epoch = 0.0  # of the newest supervisor that spoke to us
        self._channel: Channel | None = None  # while there is a supervisor
        self._stop = threading.Event()

    def run(self, on_open: Callable[[], None] = lambda: None) -> None:
        """Run until the supervisor says that it is over, or :meth:`stop`.

        Parameters
        ----------
        on_open
            Called when Spark is there: it puts handlers of signals of its own.
        """
        spark = self._launch.open_session()
        on_open()
        with self._launch.open_fleet(spark, f"{self.fleet_name}.{self.name}") as fleet:
            handler = threading.Thread(target=self._obey, args=(fleet,), daemon=True)
            handler.start()
            while not self._stop.is_set():
                try:
                    self._serve(fleet)
                except (OSError, ProtocolError) as error:
                    log.info("no supervisor: %s", error)
                except Exception:  # whatever came from there, queries go on
                    log.exception("the supervisor is cut off")
                self._stop.wait(RECONNECT_S)
            spark.sparkContext.setLogLevel("OFF")  # what stopping interrupts is no error
        spark.stop()

    def stop(self) -> None:
        """Stop; also from a signal handler."""
        self._stop.set()
        channel = self._channel
        if channel is not None:
            channel.close()  # whoever receives is woken

    # -- the channel ----------------------------------------------------------------------------

    def _serve(self, fleet: Fleet) -> None:
        """Serve one connection to the supervisor, as long as it lasts."""
        connection = address.connect(self.fleet_name, self._connect_to)
        channel = join(connection, self._token, self.name)
        channel.send({"op": "hello", "pid": os.getpid(), "cores": self._cores})
        closed = threading.Event()
        self._channel = channel
        reporter = threading.Thread(target=self._report, args=(fleet, channel, closed), daemon=True)
        reporter.start()
        try:
            while not self._stop.is_set():
                message = channel.receive()
                if message is None:
                    return
                try:
                    self._take(fleet, message)
                except (KeyError, TypeError, ValueError) as error:
                    log.warning("a message of the supervisor is refused: %r", error)
        finally:
            closed.set()
            self._channel = None
            channel.close()

    def _take(self, fleet: Fleet, message: Message) -> None:
        epoch = float(message.get("epoch", 0.0))
        if epoch < self._epoch:
            log.warning("a directive of an older supervisor is ignored")
            return
        self._epoch = epoch
        if message["op"] == "over":
            self.stop()
        elif message["op"] == "aim":
            numbers = float(message["accuracy"]), float(message["least"])
            fleet.quality.order(str(message["query"]), *numbers)
        elif message["op"] == "tell":
            fleet.parts.hear(str(message["query"]), str(message["by"]), message)
        else:
            self._orders.put(message)

    def _report(self, fleet: Fleet, channel: Channel, closed: threading.Event) -> None:
        while not closed.is_set() and not self._stop.is_set():
            try:
                channel.send({"op": "report", **self._report_of(fleet)})
            except OSError:
                return
            except Exception:
                log.exception("no report this time")
            closed.wait(REPORT_EVERY_S)

    def _report_of(self, fleet: Fleet) -> Message:
        queries: dict[str, Any] = {}
        parts = fleet.parts.reports() if self._forwards else {}
        for name in list(self._locks):  # another thread starts and stops queries
            accuracy = fleet.accuracy(name)
            queries[name] = {
                "cost": fleet.quality.cost(name),
                "accuracy": None if accuracy is None else accuracy._asdict(),
                "part": parts.get(name),
                "rate": fleet.quality.rate(name),
                "lag_s": fleet.quality.lag_s(name),
            }
        return {
            "used": fleet.quality.used,
            "others": fleet.quality.others,
            "queries": queries,
        }

    def _tell_ended(self, query: str, error: str | None, ordered: bool = False) -> None:
        channel = self._channel
        if channel is not None:
            said = {"op": "ended", "query": query, "error": error, "ordered": ordered}
            try:
                channel.send(said)
            except OSError:
                log.info("nobody heard that %s has ended", query)

    # -- queries (on a thread of their own: starting one takes seconds) -------------------------

    def _obey(self, fleet: Fleet) -> None:
        while not self._stop.is_set():
            self._end_with_spark(fleet)
            try:
                order = self._orders.get(timeout=0.5)
            except queue.Empty:
                order = {}
            try:
                if order.get("op") == "start":
                    self._try_to_start(fleet, str(order["query"]))
                elif order.get("op") == "stop":
                    self._end(fleet, str(order["query"]))
                self._look_for_failures(fleet)
            except Exception:  # a query that would not stop is still ours: we are told again
                log.exception("%s could not be done", order)

    def _end_with_spark(self, fleet: Fleet) -> None:
        """End when the JVM has died; whoever supervises the worker sees that, and places anew."""
        process = getattr(fleet.spark.sparkContext._gateway, "proc", None)
        if process is not None and process.poll() is not None and not self._stop.is_set():
            log.critical("Spark's JVM has died, and this worker with it")
            os._exit(1)

    def _try_to_start(self, fleet: Fleet, name: str) -> None:
        try:
            self._start(fleet, name)
        except Exception as error:
            log.exception("%s could not be started", name)
            if name in fleet.queries:
                fleet.stop_query(name)
            self._release(name)
            self._tell_ended(name, first_line(str(error)))

    def _start(self, fleet: Fleet, name: str) -> None:
        if name in self._locks:
            return
        self._launch.reread(config.load(self._path).queries)  # it may have been changed since
        if name not in self._launch.file.queries:
            raise UsageError(f"the file has no query {name!r}")
        self._lock(name, fleet.spark)
        built = self._launch.build(fleet.spark, name)
        self._launch.start(fleet, name, built)
        if self._launch.file.queries[name].reads:
            fleet.quality.order(name, 1.0, 1.0)  # until it is known what those have shed

    def _end(self, fleet: Fleet, name: str) -> None:
        if name in fleet.queries:
            fleet.stop_query(name)
        self._release(name)
        self._tell_ended(name, None, ordered=True)

    def _look_for_failures(self, fleet: Fleet) -> None:
        """Tell what has ended.

        The fleet itself starts what lost a Python process again.
        """
        for name in fleet.ended & self._locks.keys():
            error = fleet.failures.get(name)
            fleet.forget(name)
            self._release(name)
            self._tell_ended(name, error)

    def _lock(self, name: str, spark: SparkSession) -> None:
        """Lock a query: nobody else runs it as long as we do, even if a supervisor errs."""
        descriptor = os.open(self._lock_file(name, spark), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise SlackwaterError(f"{name} still runs on another worker") from None
        self._locks[name] = descriptor

    def _lock_file(self, name: str, spark: SparkSession) -> Path:
        """Return what is locked: beside the checkpoint, if that is on this machine.

        One elsewhere has no locks: only this machine's workers are kept from each other.
        """
        checkpoint = address_of(self._launch.checkpoint(name), spark)
        folder = local_path(checkpoint)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            return folder / LOCK
        folder = runtime_dir() / "locks"
        folder.mkdir(exist_ok=True)
        return folder / hashlib.sha256(checkpoint.encode()).hexdigest()

    def _release(self, name: str) -> None:
        descriptor = self._locks.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)


def _for_worker(file: FleetFile, cores: float) -> FleetFile:
    """Return the fleet file, with as many task slots as the worker has cores."""
    master = file.spark.master or f"local[{max(1, round(cores))}]"
    return file.model_copy(update={"spark": file.spark.model_copy(update={"master": master})})
