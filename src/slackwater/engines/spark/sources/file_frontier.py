"""How far a folder of parquet files has come: what footers say of files that Spark has not read.

Which files its next batch reads, Spark's source is asked itself. A file's newest event time is in
its footer, as the largest value of each row group; times that Spark writes as INT96 have none
there, and their column is read.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.java_gateway import JavaClass, JavaObject
from pyspark.sql.types import StructType, TimestampType

from slackwater.common.exceptions import first_line
from slackwater.engines.spark.plans.tree import relation_options
from slackwater.engines.spark.session.addresses import qualified
from slackwater.engines.spark.sources.arrivals import LocalFolder, Untold, local_folder
from slackwater.engines.spark.sources.remote_frontier import (
    FrontierLost,
    FrontierUnknown,
    RemoteFrontier,
    source_at,
)

FILES = "FileSource"
MOST_FILES = 64  # new ones that are looked at for one answer
MOST_ASKED = 500  # of which it is asked whether they are new: two calls into the JVM, or four
MOST_ROWS = 200_000  # of a file whose column has to be read
# Before 1900 a time also depends on which calendar its writer had.
_OLDEST_US = -2_208_988_800_000_000
_PER_UNIT = {"milliseconds": 1000, "microseconds": 1}  # Spark reads no others as timestamps
_SINK_LOG = "_spark_metadata"
_OF_A_SINK = "was written by a query of Spark's, whose log says which files are read"
_NOT_READ = ("_", ".")  # how names begin that Spark leaves out
_COPYING = "._COPYING_"
# Which files are read, or whether all of a file is, depends on them, unless they have this value.
_OPTIONS: dict[str, str | None] = {
    "basepath": None,
    "cleansource": "off",
    "filenameonly": "false",
    "ignoredpathsegmentregex": None,
    "ignorecorruptfiles": "false",
    "ignoreinvalidpartitionpaths": "false",
    "ignoremissingfiles": "false",
    "latestfirst": "false",
    "maxfileage": None,
    "modifiedafter": None,
    "modifiedbefore": None,
    "pathglobfilter": None,
    "recursivefilelookup": "false",
}
_SETTINGS = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreInvalidPartitionPaths",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
    "spark.sql.parquet.int96TimestampConversion",
)
_IGNORED = "spark.sql.files.ignoredPathSegmentRegex"  # from Spark 4.3 on
_IGNORED_BY_DEFAULT = "^[._]"
_PATH_FILTER = "mapreduce.input.pathFilter.class"

# Tells whether the next batch reads a file, by its path and the time of its last change in ms.
WillRead = Callable[[str, int], bool]


class ParquetFolder:
    """The files of a folder, and of its partitions, that the next batch will read.

    A file that does not tell its newest event time leaves unknown how far the folder has come until
    it has been read. One that is replaced after it has told is not looked at again, as Spark does
    not read it twice.
    """

    def __init__(self, path: str, column: str) -> None:
        self._path = path
        self._column = column
        self._folder = LocalFolder(path, wanted=_is_read)
        # Files to look at, and whether the source has said once that it has read them: its answer
        # is believed when it gives it again, as it may have been under way to other files.
        self._left: dict[str, bool] = {}
        self._found_us: int | None = None  # among files whose answer is not given yet
        self._has_partitions = False  # then Spark leaves out what is beside them
        self._told_by_root = False  # whether a file in none has told

    def newest_us(self, will_read: WillRead) -> int | None:
        """Return the largest event time in files that have come; None: it is in none.

        Raises
        ------
        FrontierUnknown
            A file that the next batch reads does not tell, or there are too many to look at.
        FrontierLost
            With the reason, where that can never be known.
        """
        self._find()
        untold: list[str] = []
        unread = 0
        for asked, path in enumerate(sorted(self._left, key=self._left.__getitem__)):
            if asked == MOST_ASKED or unread == MOST_FILES:
                if not self._left[path]:
                    untold.append(f"{self._path} has more new files than are looked at at once")
                break
            if self._is_unread(path, will_read):
                unread += 1
                try:
                    self._take(path)
                except FrontierUnknown as error:
                    untold.append(str(error))
        if untold:
            raise FrontierUnknown(untold[0])
        found_us, self._found_us = self._found_us, None
        return found_us

    def _find(self) -> None:
        """Take in the files that have come since the last look."""
        if os.path.lexists(os.path.join(self._path, _SINK_LOG)):
            raise FrontierLost(f"{self._path} {_OF_A_SINK}")
        try:
            came = self._folder.look()
        except Untold as error:
            raise FrontierLost(str(error)) from None
        for folder, names in came.items():
            if self._has_rows(folder):
                self._left |= {os.path.join(folder, name): False for name in names}
        self._has_partitions = any("=" in one[len(self._path) :] for one in self._folder.folders)
        if self._has_partitions and self._told_by_root:
            raise FrontierLost(f"{self._path} had files, and has partitions now")

    def _has_rows(self, folder: str) -> bool:
        """Tell whether Spark reads what is in a folder: its own, or one of its partitions."""
        parts = Path(folder).relative_to(self._path).parts
        keys = {part.partition("=")[0].lower() for part in parts}
        if self._column.lower() in keys:
            raise FrontierLost(f"the event time {self._column} is in the names of folders")
        return all("=" in part and _is_read(part) for part in parts)

    def _is_unread(self, path: str, will_read: WillRead) -> bool:
        changed_ms = _changed_ms(path)
        if changed_ms is not None and will_read(path, changed_ms):
            self._left[path] = False
            return True
        if changed_ms is None or self._left[path]:
            del self._left[path]
        else:
            self._left[path] = True
        return False

    def _take(self, path: str) -> None:
        """Take in what a file tells."""
        is_root = os.path.dirname(path) == self._path
        if is_root and self._has_partitions:  # if these are not empty, Spark leaves its rows out
            raise FrontierUnknown(f"{path} is beside partitions")
        try:
            told_us = newest_in_us(path, self._column)
        except FileNotFoundError:
            told_us = None
        except (OSError, pa.ArrowException) as error:  # half written, maybe
            raise FrontierUnknown(f"{path} cannot be read: {first_line(str(error))}") from None
        del self._left[path]
        if told_us is not None:
            self._found_us = told_us if self._found_us is None else max(self._found_us, told_us)
            self._told_by_root |= is_root


def newest_in_us(path: str, column: str) -> int | None:
    """Return the largest event time in a parquet file; None: no row has one.

    Parameters
    ----------
    column
        At the top level.

    Raises
    ------
    FrontierUnknown
        The file has rows, and does not tell which time Spark would read from them.
    """
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        if file.metadata.num_rows == 0:
            return None
        place = next((n for n in range(len(file.schema)) if file.schema[n].path == column), None)
        if place is None:
            raise FrontierUnknown(f"{path} has no column {column}")
        kind = file.schema[place]
        if kind.physical_type == "INT96":
            newest_us = _read_us(file, path, column)
        else:
            per_unit = _us_per_unit(kind.physical_type, kind.logical_type.to_json())
            if per_unit is None:
                raise FrontierUnknown(f"{column} of {path} is no timestamp with UTC")
            newest_us = _noted_us(file, path, column, place, per_unit)
    if newest_us is not None and newest_us < _OLDEST_US:
        raise FrontierUnknown(f"{path} has nothing after 1900")
    return newest_us


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
    if str(session.conf().get(_IGNORED, _IGNORED_BY_DEFAULT)) != _IGNORED_BY_DEFAULT:
        return f"the source may not read all of its files ({_IGNORED})"
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
    return sorted(k for k, v in options.items() if k in _OPTIONS and v.lower() != _OPTIONS[k])


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


def _noted_us(
    file: pq.ParquetFile, path: str, column: str, place: int, per_unit: int
) -> int | None:
    """Return the largest of the row groups' values; they are read where one has not noted it."""
    found: list[int] = []
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        noted = group.column(place).statistics
        if noted is not None and noted.has_min_max:
            found.append(int(noted.max_raw) * per_unit)
        elif group.num_rows and not (noted is not None and noted.null_count == group.num_rows):
            return _read_us(file, path, column)
    return max(found, default=None)


def _read_us(file: pq.ParquetFile, path: str, column: str) -> int | None:
    """Return the largest value of a column, unless there are too many."""
    if file.metadata.num_rows > MOST_ROWS:
        raise FrontierUnknown(f"{path} has no statistics, and more than {MOST_ROWS} rows")
    values = file.read([column], use_threads=False).column(column)
    newest = pc.max(values.cast(pa.timestamp("us", values.type.tz)))
    return int(newest.value) if newest.is_valid else None
