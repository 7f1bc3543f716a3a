"""Whether something has come to a query's sources, told without running a trigger.

A source is asked for its *mark*, which is another one once something has come. A mark that was
taken before a trigger that found nothing stands for "all of it was read": as long as the source has
that mark, another trigger would find nothing either. A mark may miss something (a file that takes
the place of another of the same size), so a trigger runs now and then all the same.
"""

import json
import os
import stat
import threading
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from py4j.java_gateway import JavaClass, JavaObject
from pyspark.sql.types import StructType

from slackwater.common.places import has_scheme, local_path
from slackwater.core.clock import RealClock
from slackwater.core.errors import EngineError, SlackwaterError
from slackwater.core.protocols import Clock
from slackwater.engines.spark.plans.tree import java_node, relation_options, source_nodes
from slackwater.engines.spark.sources.base import Source, SourceReader
from slackwater.engines.spark.sources.feed import FeedSource
from slackwater.engines.spark.sources.kafka import KafkaSource
from slackwater.engines.spark.sources.kafka_ends import (
    FRESH_S,
    KafkaCluster,
    KafkaEnds,
    connection,
)
from slackwater.engines.spark.sources.query_log import LogSource
from slackwater.engines.spark.sources.redis import RedisSource

TICK_S = 2.0  # times of files may be so coarse
MOST_FOLDERS = 1000  # in a folder: to look at more costs as much as a trigger
MOST_LISTED = 20_000  # files of one folder, where their names are kept
MOST_MATCHES = 50  # of a pattern
_OURS: dict[str, type[Source]] = {
    one.FORMAT: one for one in (FeedSource, KafkaSource, LogSource, RedisSource)
}
_KAFKA = ("KafkaMicroBatchStream", "KafkaSource")
_DELTA = "DeltaSource"
# What they read, by the class that Spark has for them: the folder of which a change tells.
_FOLDERS = {"FileStreamSource": "", _DELTA: "_delta_log"}
_PATTERN = frozenset("*?[]{}\\")
_LOCAL = "file:"

Mark = Hashable
M = TypeVar("M", bound=Hashable)


class Untold(SlackwaterError):
    """Of this query nobody can tell without a trigger; the message says why."""


class Arrivals(Protocol):
    """Tells whether something has come to one source."""

    quick: bool  # whether it answers at once: it asks no server and no JVM

    def mark(self) -> Mark:
        """Return a value that differs from earlier ones once something has come."""

    def rows_left(self) -> int | None:
        """Return how many rows have come and were not read; None: it does not tell."""

    def forget(self) -> None:
        """Take it that batches have run: what is read may be other streams by now."""


class _Listing(NamedTuple):
    """What a folder had when somebody looked."""

    changed_ns: int
    folders: tuple[str, ...]
    settled: bool  # whether nothing can have come since without another time
    files: frozenset[str] = frozenset()  # the names of those that are wanted


class LocalFolder:
    """A folder of this machine, with all below it; what is added changes a folder's own time.

    That is the time that nobody can set: who copies folders may set the other one back. Folders are
    listed only when it has changed, or was so young that it may be the time of two changes: else
    each costs one call.

    Parameters
    ----------
    wanted
        Which names of files are kept, so that new ones can be told; None: none are.
    """

    quick = True

    def __init__(
        self,
        path: str,
        clock: Clock = RealClock(),
        wanted: Callable[[str], bool] | None = None,
    ) -> None:
        self._path = path
        self._clock = clock
        self._wanted = wanted
        self._below: dict[str, _Listing] = {}

    @property
    def folders(self) -> Iterable[str]:
        """The folder itself and all below it, as it was last looked at."""
        return self._below.keys()

    def mark(self) -> Mark:
        """Return the times at which the folders last changed."""
        self._below = self._walk()
        return frozenset((folder, listing.changed_ns) for folder, listing in self._below.items())

    def look(self) -> dict[str, frozenset[str]]:
        """Return the wanted files, by folder, that were not there when this was last asked.

        If it fails, they are told the next time.
        """
        before, self._below = self._below, self._walk()
        new = {
            folder: listing.files - before[folder].files if folder in before else listing.files
            for folder, listing in self._below.items()
            if listing is not before.get(folder)
        }
        return {folder: names for folder, names in new.items() if names}

    def _walk(self) -> dict[str, _Listing]:
        found: dict[str, _Listing] = {}
        left = [self._path]
        while left:
            folder = left.pop()
            found[folder] = self._look(folder)
            left += found[folder].folders
            if len(found) > MOST_FOLDERS:
                raise Untold(f"{self._path} has more than {MOST_FOLDERS} folders")
        return found

    def _look(self, path: str) -> _Listing:
        seen = os.stat(path)
        known = self._below.get(path)
        if known is not None and known.settled and known.changed_ns == seen.st_ctime_ns:
            return known
        if not stat.S_ISDIR(seen.st_mode):
            return _Listing(seen.st_ctime_ns, (), settled=True)
        settled = self._clock.now() - seen.st_ctime_ns / 1e9 > TICK_S
        folders, files = [], set()
        with os.scandir(path) as entries:
            for each in entries:
                if each.is_dir():
                    folders.append(each.path)
                elif self._wanted is not None and self._wanted(each.name) and each.is_file():
                    files.add(each.name)
                    if len(files) > MOST_LISTED:
                        raise Untold(f"{path} has more than {MOST_LISTED} files")
        return _Listing(seen.st_ctime_ns, tuple(folders), settled, frozenset(files))

    def rows_left(self) -> int | None:
        """Tell nothing: what is in files is not known."""
        return None

    def forget(self) -> None:
        """Keep what is known of the folders."""


class HadoopFolder:
    """A folder, or several by a pattern, of any file system that Hadoop knows.

    How many files there are and how large they are together is one call, and no list that would
    have to come through Py4J.
    """

    quick = False

    def __init__(self, path: str, execution: JavaObject) -> None:
        client = execution._gateway_client
        self._path = JavaClass("org.apache.hadoop.fs.Path", client)(path)
        conf = execution.sparkSessionForStream().sessionState().newHadoopConf()
        self._files = self._path.getFileSystem(conf)

    def mark(self) -> Mark:
        """Return the number of files and their size, of each folder that matches."""
        matches = self._files.globStatus(self._path)
        paths = [] if matches is None else [each.getPath() for each in matches]
        if len(paths) > MOST_MATCHES:
            raise Untold(f"more than {MOST_MATCHES} folders match {self._path}")
        return frozenset(
            (str(path), str(self._files.getContentSummary(path).toString())) for path in paths
        )

    def rows_left(self) -> int | None:
        """Tell nothing: what is in files is not known."""
        return None

    def forget(self) -> None:
        """Keep nothing."""


class DeltaLog:
    """The log of a Delta table that is not on this machine: whether it has a next version.

    That is one small question (one HEAD at S3), where to list the log would cost the more the
    longer it is.
    """

    quick = False

    def __init__(self, path: str, source: JavaObject, execution: JavaObject) -> None:
        self._log = path
        self._source = source
        self._path = JavaClass("org.apache.hadoop.fs.Path", execution._gateway_client)
        conf = execution.sparkSessionForStream().sessionState().newHadoopConf()
        self._files = self._path(path).getFileSystem(conf)
        self._version = -1

    def mark(self) -> Mark:
        """Return the newest version."""
        known = int(self._source.deltaLog().unsafeVolatileSnapshot().version())  # reads nothing
        version = max(self._version, known)
        while self._files.isFile(self._path(f"{self._log}/{version + 1:020d}.json")):
            version += 1
        self._version = version
        return version

    def rows_left(self) -> int | None:
        """Tell nothing: what is in files is not known."""
        return None

    def forget(self) -> None:
        """Keep the version: it only grows."""


class OwnSource:
    """A source of ours, by a reader in the driver: it counts the rows that have arrived."""

    def __init__(self, reader: SourceReader, quick: bool) -> None:
        self._reader = reader
        self.quick = quick

    def mark(self) -> Mark:
        """Return the number of rows that have come."""
        offset = self._reader.reportLatestOffset()
        if offset is None:
            raise EngineError("the server has not answered yet")
        return int(offset["n"])

    def rows_left(self) -> int | None:
        """Tell nothing: its batches do, of each."""
        return None

    def forget(self) -> None:
        """Keep nothing."""


class Shared(Generic[M]):
    """What several queries read, asked once for all of them.

    >>> from slackwater.core.clock import VirtualClock
    >>> clock, marks = VirtualClock(), iter("abc")
    >>> shared = Shared(lambda: next(marks), clock)
    >>> shared(), shared()
    ('a', 'a')
    >>> clock.sleep(1.0)
    >>> shared()
    'b'
    """

    def __init__(self, ask: Callable[[], M], clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, M] | None = None

    def __call__(self) -> M:
        with self._lock:
            began_s = self._clock.monotonic()
            if self._kept is None or began_s - self._kept[0] > FRESH_S:
                self._kept = began_s, self._ask()
            return self._kept[1]


class SharedArrivals:
    """A source that several queries may read."""

    def __init__(self, source: Arrivals, clock: Clock) -> None:
        self.quick = source.quick
        self._source = source
        self._mark = Shared(source.mark, clock)

    def mark(self) -> Mark:
        return self._mark()

    def rows_left(self) -> int | None:
        return self._source.rows_left()

    def forget(self) -> None:
        self._source.forget()


class ArrivalsFinder:
    """Finds what tells of the sources of queries; what two of them read is asked once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # questions are asked in several threads
        self._folders: WeakValueDictionary[str, SharedArrivals] = WeakValueDictionary()
        self._clusters: dict[tuple[tuple[str, str], ...], KafkaCluster] = {}

    def find(self, execution: JavaObject) -> tuple[Arrivals, ...]:
        """Return what tells of each source of a query that has run a trigger.

        Raises
        ------
        Untold
            With the reason, where one of them cannot be asked.
        """
        plan, sources = execution.analyzedPlan(), execution.sources()
        nodes = source_nodes(plan)
        if sources is None or sources.size() != len(nodes):
            raise Untold("it is not known which sources the query reads")
        with self._lock:
            return tuple(
                self._one(
                    execution,
                    place,
                    sources.apply(place),
                    java_node(plan, node),
                    str(node.fields.get("sourceName") or ""),
                    len(nodes),
                )
                for place, node in enumerate(nodes)
            )

    def close(self) -> None:
        """Let go of the clients."""
        with self._lock:
            for cluster in self._clusters.values():
                cluster.close()
            self._clusters.clear()

    def _one(
        self,
        execution: JavaObject,
        place: int,
        source: JavaObject,
        relation: JavaObject,
        name: str,
        places: int,
    ) -> Arrivals:
        kind = str(source.getClass().getSimpleName())
        if kind in _FOLDERS:
            path = str(source.toString()).partition("[")[2].removesuffix("]")
            return self._folder(_below(path, _FOLDERS[kind]), execution, source)
        if kind not in _KAFKA and name not in _OURS:
            raise Untold(f"the source {kind} does not tell what has come")
        options = relation_options(relation)
        if kind in _KAFKA:
            if "minoffsetspertrigger" in {key.lower() for key in options}:
                raise Untold("the source waits for more than has come")
            settings = tuple(sorted(connection(options).items()))
            if settings not in self._clusters:
                cluster = KafkaCluster(execution, dict(settings), self._clock)
                self._clusters[settings] = cluster
            return KafkaEnds(self._clusters[settings], execution, place, places)
        return _own_source(_OURS[name], options, relation)

    def _folder(self, path: str, execution: JavaObject, source: JavaObject) -> Arrivals:
        key = path if path.startswith(_LOCAL) else f"{id(execution)} {path}"
        found = self._folders.get(key)
        if found is None:
            local = local_folder(path)
            if local is not None:
                folder: Arrivals = LocalFolder(local, self._clock)
            elif str(source.getClass().getSimpleName()) == _DELTA:
                folder = DeltaLog(path, source, execution)
            else:
                folder = HadoopFolder(path, execution)
            found = self._folders[key] = SharedArrivals(folder, self._clock)
        return found


def counts_rows(execution: JavaObject) -> bool | None:
    """Tell whether a query reads a source that counts the rows that are left; None: not yet known.

    It costs a few calls: who reads none need not be looked at any further.
    """
    sources = execution.sources()
    if sources is None or sources.isEmpty():  # its plan has not been made
        return None
    return "Kafka" in str(sources)


def _own_source(source: type[Source], options: dict[str, str], relation: JavaObject) -> OwnSource:
    own = source.OPTIONS.from_texts(options)
    if own.sampled:
        raise Untold("rows that are held back may be read without others")
    schema = StructType.fromJson(json.loads(relation.schema().json()))
    return OwnSource(source.READER(own, schema), quick=source in (FeedSource, LogSource))


def _below(path: str, folder: str) -> str:
    """Return a folder of a path of any file system, itself if it is not named.

    >>> _below("s3a://events/in", "_delta_log"), _below("hdfs://name:8020/in/", "")
    ('s3a://events/in/_delta_log', 'hdfs://name:8020/in')
    """
    return f"{path.rstrip('/')}/{folder}".rstrip("/")


def local_folder(path: str) -> str | None:
    """Return a path of this machine; None: it is one of another, or a pattern.

    >>> local_folder("file:/tmp/in"), local_folder("file:///tmp/in")
    ('/tmp/in', '/tmp/in')
    >>> local_folder("hdfs://name/in"), local_folder("file:/tmp/*")
    (None, None)
    """
    found = local_path(path) if has_scheme(path) and not _PATTERN & set(path) else None
    return None if found is None else str(found)
