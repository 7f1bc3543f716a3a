"""How far a folder of parquet files has come: what footers say of files that Spark has not read.

Which files its next batch reads, Spark's source is asked itself. A file's newest event time is in
its footer, as the largest value of each row group; times that Spark writes as INT96 have none
there, and their column is read.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.java_gateway import JavaClass, JavaObject
from pyspark.sql.types import StructType, TimestampType

from slackwater.core.errors import EngineError
from slackwater.engines.spark.plans.tree import relation_options
from slackwater.engines.spark.sources.arrivals import LocalFolder, local_folder, qualified
from slackwater.engines.spark.sources.remote_frontier import RemoteFrontier, source_at

FILES = "FileSource"
MOST_FILES = 64  # that are looked at for one answer, the newest; F lags behind what others have
MOST_ROWS = 200_000  # of a file whose column has to be read
# Before 1900 a time also depends on which calendar its writer had.
_OLDEST_US = -2_208_988_800_000_000
_PER_UNIT = {"milliseconds": 1000, "microseconds": 1}  # Spark reads no others as timestamps
_SINK_LOG = "_spark_metadata"
_OF_A_SINK = "was written by a query of Spark's, whose log says which files are read"
_NOT_READ = ("_", ".")  # how names begin that Spark leaves out
_COPYING = "._COPYING_"
_OPTIONS = {  # which files are read, or whether all of a file is, depends on them
    "basepath",
    "cleansource",
    "filenameonly",
    "ignorecorruptfiles",
    "ignoreinvalidpartitionpaths",
    "ignoremissingfiles",
    "latestfirst",
    "maxfileage",
    "modifiedafter",
    "modifiedbefore",
    "pathglobfilter",
    "recursivefilelookup",
}
_HARMLESS = ("false", "off")
_SETTINGS = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreInvalidPartitionPaths",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
    "spark.sql.parquet.int96TimestampConversion",
)
_PATH_FILTER = "mapreduce.input.pathFilter.class"

# Tells whether the next batch reads a file, by its path and the time of its last change in ms.
WillRead = Callable[[str, int], bool]


class ParquetFolder:
    """The files of a folder, and of its partitions, that the next batch will read.

    A file that cannot be read yet tells nothing and is looked at again; one that is replaced after
    it was looked at is not, as Spark does not read it twice.
    """

    def __init__(self, path: str, column: str) -> None:
        self._path = path
        self._column = column
        self._folder = LocalFolder(path)
        self._names: dict[str, frozenset[str]] = {}  # that each folder had
        self._left: set[str] = set()  # files to look at
        self._has_partitions = False  # then Spark leaves out what is beside them

    def newest_us(self, will_read: WillRead) -> int | None:
        """Return the largest event time in files that have come; None: there are none."""
        if os.path.lexists(os.path.join(self._path, _SINK_LOG)):
            raise EngineError(f"{self._path} {_OF_A_SINK}")
        self._left.update(self._find())
        changed_ms = {path: ms for path in self._left if (ms := _changed_ms(path)) is not None}
        newest = sorted(changed_ms, key=changed_ms.__getitem__, reverse=True)[:MOST_FILES]
        self._left.intersection_update(newest)
        found: list[int] = []
        for path in newest:
            beside = self._has_partitions and os.path.dirname(path) == self._path
            if not beside and will_read(path, changed_ms[path]):
                try:
                    told = newest_in_us(path, self._column)
                except (OSError, pa.ArrowException):  # half written, maybe
                    continue
                if told is not None:
                    found.append(told)
            self._left.discard(path)
        return max(found, default=None)

    def _find(self) -> Iterator[str]:
        """Yield the files that have come since the last look."""
        for folder in self._folder.look():
            parts = Path(folder).relative_to(self._path).parts
            self._has_partitions |= any("=" in part for part in parts)
            if not self._is_read(parts):
                continue
            with os.scandir(folder) as entries:
                names = frozenset(e.name for e in entries if _is_read(e.name) and e.is_file())
            for name in names - self._names.get(folder, frozenset()):
                yield os.path.join(folder, name)
            self._names[folder] = names

    def _is_read(self, parts: tuple[str, ...]) -> bool:
        """Tell whether Spark reads what is in a folder: its own, or one of its partitions."""
        keys = {part.partition("=")[0].lower() for part in parts}
        if self._column.lower() in keys:
            raise EngineError(f"the event time {self._column} is in the names of folders")
        return all("=" in part and _is_read(part) for part in parts)


def newest_in_us(path: str, column: str) -> int | None:
    """Return the largest event time in a parquet file; None: it does not tell.

    Parameters
    ----------
    column
        At the top level. What Spark would not read as a ``timestamp`` from it tells nothing.
    """
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        place = next((n for n in range(len(file.schema)) if file.schema[n].path == column), None)
        if place is None:
            return None
        kind = file.schema[place]
        if kind.physical_type == "INT96":
            newest_us = _read_us(file, column)
        else:
            per_unit = _us_per_unit(kind.physical_type, kind.logical_type.to_json())
            newest_us = None if per_unit is None else _noted_us(file, column, place, per_unit)
    return newest_us if newest_us is not None and newest_us >= _OLDEST_US else None


def why_untold(relation: JavaObject, column: str) -> str | None:
    """Return why a file source does not tell how far it has come; None: it does."""
    source = relation.dataSource()
    kind = str(source.className())
    if kind.lower() != "parquet":
        return f"files of the format {kind} do not tell how far they have come, only parquet does"
    options = {key.lower(): value for key, value in relation_options(relation).items()}
    if found := chosen_files(options):
        return f"the source may not read all of its files ({', '.join(found)})"
    session = source.sparkSession()
    for setting in _SETTINGS:
        if str(session.conf().get(setting, "false")).lower() == "true":
            return f"{setting} is on: what files hold may not be what is read"
    if session.sessionState().newHadoopConf().get(_PATH_FILTER) is not None:
        return f"the source may not read all of its files ({_PATH_FILTER})"
    schema = StructType.fromJson(json.loads(relation.schema().json()))
    if not isinstance(schema[column].dataType, TimestampType):
        return f"{column} is a {schema[column].dataType.simpleString()}, not a timestamp"
    if column.lower() in _partition_columns(source):
        return f"the event time {column} is in the names of folders"
    if "." in column:  # a footer writes the field of a struct like that
        return f"there is a dot in the name of the event time {column}"
    return _why_not_there(_folder_of(relation))


def chosen_files(options: Mapping[str, str]) -> list[str]:
    """Return those options, in lower case, for which files may be left out.

    >>> chosen_files({"path": "/in", "latestfirst": "false", "maxfileage": "1d"})
    ['maxfileage']
    """
    return sorted(k for k, v in options.items() if k in _OPTIONS and v.lower() not in _HARMLESS)


def parquet_frontier(
    relation: JavaObject, column: str, execution: JavaObject, place: int, places: int
) -> RemoteFrontier:
    """Return the frontier of a source for which :func:`why_untold` knows no reason.

    Parameters
    ----------
    place, places
        Which of how many sources of its plan.
    """
    path = _folder_of(relation)
    assert path is not None
    folder = ParquetFolder(path, column)

    def newest_us() -> int | None:
        source = source_at(execution, place, places)
        return None if source is None else folder.newest_us(_unread(source))

    return RemoteFrontier(newest_us)


def _why_not_there(path: str | None) -> str | None:
    if path is None:
        return "only of files in one folder of this machine it is known how far they have come"
    if _SINK_LOG in Path(path).parts or os.path.lexists(os.path.join(path, _SINK_LOG)):
        return f"the folder {_OF_A_SINK}"
    return "the source is one file" if os.path.isfile(path) else None


def _unread(source: JavaObject) -> WillRead:
    """Return what asks a source whether a file is new to it, as its next batch will.

    It knows a file by its address, which can be written in two ways: neither may be known to it.
    """
    seen = source.seenFiles()
    paths = JavaClass("org.apache.spark.paths.SparkPath", source._gateway_client)
    return lambda path, ms: all(
        seen.isNewFile(paths.fromPathString(prefix + path), ms) for prefix in ("file://", "file:")
    )


def _folder_of(relation: JavaObject) -> str | None:
    """Return the folder on this machine that a source reads; None: others, or elsewhere."""
    options = {key.lower(): value for key, value in relation_options(relation).items()}
    conf = relation.dataSource().sparkSession().sessionState().newHadoopConf()
    return local_folder(qualified(options["path"], conf)) if "path" in options else None


def _partition_columns(source: JavaObject) -> set[str]:
    names = source.sourceInfo().partitionColumns()
    return {str(names.apply(place)).lower() for place in range(names.size())}


def _is_read(name: str) -> bool:
    return not name.startswith(_NOT_READ) and not name.endswith(_COPYING)


def _changed_ms(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns // 1_000_000
    except OSError:  # it is gone
        return None


def _us_per_unit(physical_type: str, logical_type: str) -> int | None:
    """Return the microseconds in a unit of a column's numbers; None: they are no points in time.

    >>> kind = '{"Type": "Timestamp", "isAdjustedToUTC": true, "timeUnit": "milliseconds"}'
    >>> _us_per_unit("INT64", kind), _us_per_unit("INT64", kind.replace("true", "false"))
    (1000, None)
    """
    kind = json.loads(logical_type)
    if physical_type != "INT64" or kind["Type"] != "Timestamp" or not kind["isAdjustedToUTC"]:
        return None  # of a time of day without a zone only the session knows when it is
    return _PER_UNIT.get(kind["timeUnit"])


def _noted_us(file: pq.ParquetFile, column: str, place: int, per_unit: int) -> int | None:
    """Return the largest of the row groups' values; they are read where one has not noted it."""
    found: list[int] = []
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        noted = group.column(place).statistics
        if noted is not None and noted.has_min_max:
            found.append(int(noted.max_raw) * per_unit)
        elif group.num_rows and not (noted is not None and noted.null_count == group.num_rows):
            return _read_us(file, column)
    return max(found, default=None)


def _read_us(file: pq.ParquetFile, column: str) -> int | None:
    """Return the largest value of a column, unless there are too many."""
    if file.metadata.num_rows > MOST_ROWS:
        return None
    values = file.read([column], use_threads=False).column(column)
    newest = pc.max(values.cast(pa.timestamp("us", values.type.tz)))
    return int(newest.value) if newest.is_valid else None
