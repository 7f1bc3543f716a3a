"""Flink 2: jobs from its REST interface, counters from there or its Prometheus reporter."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from slackwater.core.entities import Operator, Reading, Thread
from slackwater.core.errors import EngineError
from slackwater.engines.outside.base import Driver
from slackwater.engines.outside.http import Endpoint
from slackwater.engines.outside.jvm_threads import JvmThreads
from slackwater.engines.outside.listeners import is_local, pid_of_port
from slackwater.engines.outside.prometheus import samples

_COUNTERS = {"numRecordsIn": "tuples-in", "numRecordsOut": "tuples-out"}
_PREFIX = "flink_taskmanager_job_task_"


@dataclass(frozen=True, slots=True)
class Subtask:
    """One copy of a vertex."""

    job: str
    query: str
    vertex: str
    vertex_name: str
    index: int
    of: int
    started_ms: int
    manager: str  # the TaskManager that runs it
    downstream: tuple[tuple[str, str], ...]  # vertices, and how tuples get there
    source: bool

    @property
    def name(self) -> str:
        """The name of its operator."""
        return operator_name(self.query, self.vertex, self.index)

    @property
    def thread(self) -> str:
        """How its thread's name begins; an attempt's number follows."""
        return f"{self.vertex_name} ({self.index + 1}/{self.of})#"

    def writes_to(self, other: "Subtask", ship: str) -> bool:
        """Tell whether any of its tuples reach that copy of a vertex downstream."""
        return ship != "FORWARD" or self.of != other.of or self.index == other.index


def operator_name(query: str, vertex: str, index: int) -> str:
    return f"{query}/{vertex[:8]}/{index}"


class Flink(Driver):
    """Every subtask that is not fused with another has a thread named after its vertex.

    Parameters
    ----------
    label
        The engine's name.
    rest
        Of the JobManager.
    prometheus
        Addresses of the TaskManagers' Prometheus reporters; without them counters come from the
        REST interface, where they are up to ``metrics.fetcher.update-interval`` old.
    """

    name = "flink"
    provides = frozenset({"cpu-time", "tuples-in", "tuples-out"})

    def __init__(
        self,
        label: str = "flink",
        rest: str = "http://127.0.0.1:8081",
        prometheus: str | Iterable[str] = (),
    ) -> None:
        super().__init__(label)
        self._rest = Endpoint(rest)
        addresses = [prometheus] if isinstance(prometheus, str) else prometheus
        self._reporters = [Endpoint(address) for address in addresses]
        self._jobs: dict[str, tuple[Any, list[Subtask]]] = {}  # by what says whether they changed
        self._managers: dict[str, JvmThreads | None] = {}  # None: on another machine

    def _read(self, now_s: float) -> Reading:
        subtasks = list(self._subtasks())
        threads, own = self._threads(subtasks)
        copies: dict[tuple[str, str], list[Subtask]] = defaultdict(list)
        for subtask in subtasks:
            copies[subtask.job, subtask.vertex].append(subtask)
        operators = tuple(
            Operator(
                name=subtask.name,
                query=subtask.query,
                logical=(subtask.vertex_name,),
                downstream=tuple(
                    each.name
                    for vertex, ship in subtask.downstream
                    for each in copies[subtask.job, vertex]
                    if subtask.writes_to(each, ship)
                ),
                threads=threads.get(subtask.name, ()),
                source=subtask.source,
                vertex=f"{subtask.job}/{subtask.vertex}",
            )
            for subtask in subtasks
        )
        helpers = (Operator(f"{m} itself", "", threads=own[m], helper=True) for m in own)
        return Reading(now_s, (*operators, *helpers), self._counters(subtasks))

    def pids(self) -> Iterable[int]:
        return [jvm.pid for jvm in self._managers.values() if jvm is not None and jvm.alive]

    def close(self) -> None:
        for endpoint in (self._rest, *self._reporters):
            endpoint.close()

    def _subtasks(self) -> Iterator[Subtask]:
        overview = self._rest.json("/jobs/overview")["jobs"]
        running = [job for job in overview if job["state"] == "RUNNING"]
        names = defaultdict(list)
        for job in sorted(running, key=lambda job: (job["start-time"], job["jid"])):
            names[job["name"]].append(job["jid"])
        for job in running:
            key, version = job["jid"], (job["last-modification"], job["tasks"])
            twins = names[job["name"]]
            query = job["name"] if len(twins) == 1 else f"{job['name']}#{key[:8]}"
            known = self._jobs.get(key)
            if known is None or known[0] != (version, query):
                found = list(self._subtasks_of(key, query))
                # Details come from a cache of Flink's that may be seconds behind the overview.
                settled = len(found) == job["tasks"]["running"]
                known = self._jobs[key] = ((version, query) if settled else None, found)
            yield from known[1]
        for gone in self._jobs.keys() - {job["jid"] for job in running}:
            del self._jobs[gone]

    def _subtasks_of(self, job: str, query: str) -> Iterator[Subtask]:
        plan = self._rest.json(f"/jobs/{job}/plan")["plan"]
        nodes = plan["nodes"]
        downstream: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for node in nodes:
            for before in node.get("inputs", ()):
                downstream[before["id"]].append((node["id"], before.get("ship_strategy", "")))
        sources = {node["id"] for node in nodes if not node.get("inputs")}
        for vertex in self._rest.json(f"/jobs/{job}")["vertices"]:
            detail = self._rest.json(f"/jobs/{job}/vertices/{vertex['id']}")
            for subtask in detail["subtasks"]:
                if subtask["status"] == "RUNNING":
                    yield Subtask(
                        job=job,
                        query=query,
                        vertex=vertex["id"],
                        vertex_name=vertex["name"],
                        index=int(subtask["subtask"]),
                        of=int(vertex["parallelism"]),
                        started_ms=int(subtask["start-time"]),
                        manager=subtask["taskmanager-id"],
                        downstream=tuple(downstream[vertex["id"]]),
                        source=vertex["id"] in sources,
                    )

    def _threads(
        self, subtasks: list[Subtask]
    ) -> tuple[dict[str, tuple[Thread, ...]], dict[str, tuple[Thread, ...]]]:
        """Return threads of each operator on this machine, and nobody's by TaskManager.

        Equal jobs have equal thread names. They are told apart by their age: the subtask that was
        started first has the thread that was.
        """
        found: dict[str, tuple[Thread, ...]] = {}
        own: dict[str, tuple[Thread, ...]] = {}
        for manager in {subtask.manager for subtask in subtasks}:
            jvm = self._manager(manager)
            if jvm is None:
                continue
            by_start: dict[str, list[Thread]] = defaultdict(list)
            present = jvm.read()
            for thread, name in sorted(present.items(), key=lambda item: item[0].started):
                by_start[name.rpartition("#")[0] + "#"].append(thread)
            wanted: dict[str, list[Subtask]] = defaultdict(list)
            for subtask in sorted(subtasks, key=lambda s: (s.started_ms, s.job)):
                if subtask.manager == manager:
                    wanted[subtask.thread].append(subtask)
            for prefix, those in wanted.items():
                # More threads than subtasks: the oldest are of attempts that are still ending.
                threads = by_start.get(prefix, [])[-len(those) :]
                for subtask, thread in zip(those, threads, strict=False):
                    found[subtask.name] = (thread,)
            taken = {thread for threads in found.values() for thread in threads}
            own[manager] = tuple(thread for thread in present if thread not in taken)
        return found, own

    def _manager(self, key: str) -> JvmThreads | None:
        known = self._managers.get(key)
        if key not in self._managers or (known is not None and not known.alive):
            details = self._rest.json("/taskmanagers")["taskmanagers"]
            found = next((each for each in details if each["id"] == key), None)
            if found is None:  # it registers just now
                return None
            # Other machines may use the same port: the address must be one of ours.
            if not is_local(re.split("[@:/]+", found["path"])[2]):
                self._managers[key] = None
                return None
            pid = pid_of_port(int(found["dataPort"]))
            if pid is None:  # it has just died, or belongs to another user
                return None
            self._managers[key] = JvmThreads(pid)
        return self._managers[key]

    def _counters(self, subtasks: list[Subtask]) -> dict[str, dict[str, float]]:
        if self._reporters:
            return self._from_reporters(subtasks)
        return self._from_rest(subtasks)

    def _from_reporters(self, subtasks: list[Subtask]) -> dict[str, dict[str, float]]:
        names = {(s.job, s.vertex, str(s.index)): s.name for s in subtasks}
        wanted = frozenset(_PREFIX + counter for counter in _COUNTERS)
        found: dict[str, dict[str, float]] = {metric: {} for metric in _COUNTERS.values()}
        silent = []
        for reporter in self._reporters:
            try:
                text = reporter.text("/metrics")
            except EngineError as error:
                silent.append(error)
                continue
            for sample in samples(text, wanted):
                labels = sample.labels
                key = (labels["job_id"], labels["task_id"], labels["subtask_index"])
                if key in names:
                    metric = _COUNTERS[sample.name.removeprefix(_PREFIX)]
                    found[metric][names[key]] = sample.value
        if len(silent) == len(self._reporters):
            raise silent[0]
        return found

    def _from_rest(self, subtasks: list[Subtask]) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {metric: {} for metric in _COUNTERS.values()}
        vertices: dict[tuple[str, str], list[Subtask]] = defaultdict(list)
        for subtask in subtasks:
            vertices[subtask.job, subtask.vertex].append(subtask)
        for (job, vertex), copies in vertices.items():
            asked = ",".join(f"{s.index}.{counter}" for s in copies for counter in _COUNTERS)
            for each in self._rest.json(f"/jobs/{job}/vertices/{vertex}/metrics?get={asked}"):
                index, _, counter = each["id"].partition(".")
                name = operator_name(copies[0].query, vertex, int(index))
                found[_COUNTERS[counter]][name] = float(each["value"])
        return found
