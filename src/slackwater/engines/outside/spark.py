"""Spark Structured Streaming: queries from the gauges that its web port serves, threads by name."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from slackwater.common.procfs import (
    CpuMeter,
    all_processes,
    descendants,
    find_thread,
    is_alive,
    threads_of,
)
from slackwater.core.entities import Operator, Reading, Thread
from slackwater.core.errors import EngineError, UsageError
from slackwater.engines.outside.base import Driver
from slackwater.engines.outside.http import Endpoint
from slackwater.engines.outside.jvm_threads import JvmThreads
from slackwater.engines.outside.listeners import is_local, pid_of_port

_STREAM = re.compile(r"^stream execution thread for (?:(?P<name>.*) )?\[id = (?P<id>[\w-]+), runId")
_TASK = re.compile(
    r"^Executor task launch worker for (?P<task>task .* in stage (?P<stage>\d+)\..*)$"
)
_GAUGE = re.compile(r"\.driver\.spark\.streaming\.(?P<name>.+)\.(?P<what>[\w]+-?\w*)$")
_QUERY_OF_JOB = re.compile(r"\bid = (?P<id>[0-9a-f-]{36})")


class EndedBatch(NamedTuple):
    """What is known of a query's last micro-batch."""

    gauges: tuple[tuple[str, float], ...]  # as they were when it ended
    began_s: float
    arrival_rate: float  # rows per second since the one before it began
    cpu_s: float = 0.0  # that the application had used when it ended
    cost_s: float | None = None  # of a row


class Spark(Driver):
    """One operator a query: its stream-execution thread, and its tasks while they are long.

    A task thread serves whoever comes next, so it counts as a query's only while one task of that
    query stays on it from one reading to the next.

    Parameters
    ----------
    label
        The engine's name.
    rest
        Address of the driver's web port; with ``spark.sql.streaming.metricsEnabled`` it also serves
        each query's gauges. Without it threads are still told by their names, but no metrics.
    pid
        Of the driver, where ``rest`` is not given.
    whole
        All threads of the application belong to its query, those for garbage collection and
        compilation and its Python workers as well. For applications that run one query each: there
        priorities reach everything that the query does, and a row costs what CPU time it took.
        Otherwise it costs the time of its batch, which also grows when others are in its way.
    """

    name = "spark"

    def __init__(
        self,
        label: str = "spark",
        rest: str | None = None,
        pid: int | None = None,
        whole: bool = False,
    ) -> None:
        super().__init__(label)
        if rest is None and pid is None:
            raise UsageError(f"{label}: give rest (http://127.0.0.1:4040) or pid of the driver")
        self._endpoint = None if rest is None else Endpoint(rest)
        self._port = None if self._endpoint is None else _local_port(label, self._endpoint)
        self._pid = pid
        self._process = None if pid is None else find_thread(pid)  # not one that comes later
        self._whole = whole
        self._jvm: JvmThreads | None = None
        self._batches: dict[str, EndedBatch] = {}
        self._cpu: CpuMeter | None = None
        self._streams: Mapping[Thread, str] = {}  # threads that run queries
        self._on_thread: dict[Thread, str] = {}  # the task that each thread was seen with
        self._queries_of_stages: dict[int, str] = {}
        if self._endpoint is not None:
            told = {"arrival-rate", "cost", "selectivity", "head-age"}
            self.provides = self.provides | told

    def _read(self, now_s: float) -> Reading:
        jvm = self._find_jvm()
        names = self._names(jvm)
        streams = {
            thread: match for thread, name in names.items() if (match := _STREAM.match(name))
        }
        self._streams = {thread: names[thread] for thread in streams}
        # A query without a name goes by its id, also in Spark's gauges.
        ids = {match["id"]: match["name"] or match["id"] for match in streams.values()}
        found: dict[str, list[Thread]] = {name: [] for name in ids.values()}
        for thread, match in streams.items():
            found[ids[match["id"]]].append(thread)
        if self._whole and len(found) == 1:
            found = {name: self._all_threads(jvm.pid) for name in found}
        else:
            for thread, query in self._tasks(names, ids).items():
                found.setdefault(query, []).append(thread)
        operators = [
            Operator(name, name, logical=(name,), threads=tuple(threads))
            for name, threads in sorted(found.items())
        ]
        workers = () if self._whole else _python_workers(jvm.pid)
        if workers:
            operators.append(Operator("python workers", "", threads=workers, helper=True))
        return Reading(now_s, tuple(operators), self._metrics(now_s, set(found)))

    def _names(self, jvm: JvmThreads) -> Mapping[Thread, str]:
        """Return the names of threads.

        Where all threads are one query's, only its own name matters, and only until it ends: asking
        takes long on a busy JVM, and it starts threads all the time.
        """
        if self._whole and self._streams and all(is_alive(thread) for thread in self._streams):
            return self._streams
        return jvm.read()

    def pids(self) -> Iterable[int]:
        return () if self._jvm is None or not self._jvm.alive else (self._jvm.pid,)

    def close(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()

    def _find_jvm(self) -> JvmThreads:
        if self._jvm is None or not self._jvm.alive:
            pid = self._pid
            if pid is not None and (self._process is None or not is_alive(self._process)):
                raise EngineError(f"{self.label}: there is no process {pid} any more")
            if pid is None and self._port is not None:
                pid = pid_of_port(self._port)
            if pid is None:
                raise EngineError(
                    f"{self.label}: no process that may be looked at listens on port {self._port}"
                )
            self._jvm = JvmThreads(pid, renames=not self._whole)
            self._batches.clear()
            if not self._jvm.alive:
                self._jvm = None
                raise EngineError(f"{self.label}: there is no process {pid}")
        return self._jvm

    def _all_threads(self, pid: int) -> list[Thread]:
        return [thread for each in _tree(pid) for thread in threads_of(each)]

    def _tasks(self, names: Mapping[Thread, str], queries: dict[str, str]) -> dict[Thread, str]:
        """Return threads that have had the same task since the last reading, with their query."""
        seen = {t: match for t, name in names.items() if (match := _TASK.match(name))}
        stayed = {t: m for t, m in seen.items() if self._on_thread.get(t) == m["task"]}
        self._on_thread = {thread: match["task"] for thread, match in seen.items()}
        if not stayed or self._endpoint is None:
            return {}
        if not {int(match["stage"]) for match in stayed.values()} <= self._queries_of_stages.keys():
            try:
                self._queries_of_stages = self._ask_stages(queries)
            except EngineError:
                return {}  # the first question to this interface takes Spark seconds
        found = {}
        for thread, match in stayed.items():
            query = self._queries_of_stages.get(int(match["stage"]))
            if query is not None:
                found[thread] = query
        return found

    def _ask_stages(self, queries: dict[str, str]) -> dict[int, str]:
        """Ask for running stages and their queries, as their jobs' descriptions say."""
        assert self._endpoint is not None
        found = {}
        for application in self._endpoint.json("/api/v1/applications"):
            for job in self._endpoint.json(
                f"/api/v1/applications/{application['id']}/jobs?status=running"
            ):
                match = _QUERY_OF_JOB.search(job.get("description", ""))
                if match is not None and match["id"] in queries:
                    found.update(dict.fromkeys(job["stageIds"], queries[match["id"]]))
        return found

    def _metrics(self, now_s: float, queries: set[str]) -> dict[str, dict[str, float]]:
        if self._endpoint is None:
            return {}
        gauges = gauges_of(self._endpoint.json("/metrics/json/"))
        found: dict[str, dict[str, float]] = {
            name: {} for name in ("arrival-rate", "cost", "selectivity", "head-age")
        }
        for query in queries & gauges.keys():
            told = gauges[query]
            batch = self._last_batch(query, told, now_s)
            found["arrival-rate"][query] = batch.arrival_rate
            # While nothing comes, Spark says so only every ten seconds.
            found["head-age"][query] = now_s - batch.began_s if batch.arrival_rate > 0 else 0.0
            found["selectivity"][query] = 1.0  # all of a query is one operator: it ends in results
            if batch.cost_s is not None:
                found["cost"][query] = batch.cost_s
        return found

    def _last_batch(self, query: str, told: dict[str, float], now_s: float) -> EndedBatch:
        """Return the last batch that ended: all that came after it began still waits.

        Gauges change when a batch ends, and one of them is how long it took. The input rate among
        them counts from the last time that Spark looked for data, even if there was none; so what
        a batch read is set against when the batch before it began.
        """
        state = tuple(sorted(told.items()))
        last = self._batches.get(query)
        if last is not None and last.gauges == state:
            return last
        took_s = told.get("latency", 0.0) / 1000
        rows, began_s = told.get("processingRate-total", 0.0) * took_s, now_s - took_s
        # Of the first one seen: it arrives no faster than either.
        rate = min(told.get("inputRate-total", 0.0), told.get("processingRate-total", 0.0))
        cpu_s = self._application_cpu_s() if self._whole else 0.0
        cost_s = took_s / rows if rows else None
        if last is not None:
            since_s = began_s - last.began_s
            rate = rows / since_s if since_s > 0 else last.arrival_rate
            cost_s = (cpu_s - last.cpu_s) / rows if rows and self._whole else cost_s
            cost_s = last.cost_s if cost_s is None else cost_s
        self._batches[query] = EndedBatch(state, began_s, rate, cpu_s, cost_s)
        return self._batches[query]

    def _application_cpu_s(self) -> float:
        pid = self._find_jvm().pid
        if self._cpu is None or self._cpu.root != pid:
            self._cpu = CpuMeter(pid)
        return self._cpu.read()


def _local_port(label: str, endpoint: Endpoint) -> int:
    """Return the port; threads can be steered on this machine only."""
    if not is_local(endpoint.host):
        raise UsageError(f"{label}: {endpoint.host} is another machine; run a middleware there")
    return endpoint.port


def gauges_of(answer: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the gauges of each query, from what ``/metrics/json/`` answers.

    >>> name = "local-1.driver.spark.streaming.my.query.inputRate-total"
    >>> gauges_of({"gauges": {name: {"value": 12.5}, "x": {"value": 1}}})
    {'my.query': {'inputRate-total': 12.5}}
    """
    found: dict[str, dict[str, float]] = {}
    for key, gauge in answer["gauges"].items():
        match = _GAUGE.search(key)
        if match is not None:
            found.setdefault(match["name"], {})[match["what"]] = float(gauge["value"])
    return found


def _python_workers(pid: int) -> tuple[Thread, ...]:
    return tuple(thread for child in _tree(pid)[1:] for thread in threads_of(child))


def _tree(pid: int) -> list[int]:
    """Return a process, and all below it."""
    return [pid, *sorted(descendants(pid, all_processes()) - {pid})]
