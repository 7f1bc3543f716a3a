"""Files of a checkpoint, on this machine or on any file system that Hadoop knows.

Names are relative to the folder, with slashes. What fails is an ``OSError`` of one line.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, Self

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from slackwater.common.exceptions import first_line
from slackwater.common.places import local_path
from slackwater.core.errors import UsageError
from slackwater.engines.spark.session.addresses import address_of


class Unreachable(UsageError):
    """A file system that does not answer, or for which there is no jar."""


class Folder(Protocol):
    """A folder; it need not exist."""

    def exists(self) -> bool:
        """Tell whether there is anything of that name."""

    def changed_s(self, below: str) -> dict[str, float]:
        """Return what a folder below holds, and when each was last changed; empty: no folder."""

    def files(self) -> list[str]:
        """Return the names of all files, however deep."""

    def read(self, name: str) -> str | None:
        """Return the content of a file; None: there is none."""

    def write(self, name: str, text: str) -> None:
        """Write a file in place of what is there, and the folders above it."""

    def copy(self, name: str, target: Self, copied: str) -> None:
        """Copy a file into another folder of the same kind, under another name."""

    def beside(self, prefix: str, suffix: str) -> Self:
        """Return a folder in the same one, of almost the same name."""

    def contains(self, other: Self) -> bool:
        """Tell whether the other one is this one or lies in it."""

    def rename(self, target: Self) -> None:
        """Give it another name, which nobody has."""

    def remove(self) -> None:
        """Remove it with all that it holds, if it exists."""


def open_folder(place: str | Path, spark: SparkSession | None = None) -> Folder:
    """Return a folder by its path or address.

    Parameters
    ----------
    spark
        Knows how file systems are reached that are not this machine's, and on which one a path is.
    """
    address = _address(place, spark)
    path = local_path(address)
    return hadoop_folder(address, spark) if path is None else LocalFiles(path)


def hadoop_folder(place: str | Path, spark: SparkSession | None) -> "HadoopFiles":
    """Return a folder that is reached through Hadoop, also one of this machine."""
    if spark is None:
        raise UsageError(f"{place} is reached through Spark: give a session that knows how")
    if getattr(spark, "_jsparkSession", None) is None:
        raise UsageError(f"{place} is reached through a classic session of Spark, not by Connect")
    address = _address(place, spark)
    path = local_path(address)
    try:
        return HadoopFiles(address if path is None else f"file://{path.absolute()}", spark)
    except OSError as problem:  # no jar for it, or a wrong address
        raise Unreachable(f"{place} cannot be reached: {problem}") from None


def _address(place: str | Path, spark: SparkSession | None) -> str:
    try:
        with _os_errors():
            return address_of(place, spark)
    except OSError as problem:  # of the file system that paths are on
        raise Unreachable(f"{place} cannot be reached: {problem}") from None


def numbers(names: Iterable[str]) -> list[int]:
    """Return the numbers of batches among names; temporary and checksum files have none.

    >>> numbers(["10", "9", ".9.crc", "9.crc"])
    [9, 10]
    """
    return sorted(int(name) for name in names if name.isdecimal())


class LocalFiles:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def changed_s(self, below: str) -> dict[str, float]:
        found = {}
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.path / below) as held:
            for each in held:
                with suppress(FileNotFoundError):  # it has gone meanwhile, or leads nowhere
                    found[each.name] = each.stat().st_mtime
        return found

    def files(self) -> list[str]:
        return [
            str(Path(folder, name).relative_to(self.path))
            for folder, _, names in os.walk(self.path, onerror=_raise, followlinks=True)
            for name in names
        ]

    def read(self, name: str) -> str | None:
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def copy(self, name: str, target: Self, copied: str) -> None:
        origin, goal = self.path / name, target.path / copied
        _make_alike(origin.parent, goal.parent, depth=copied.count("/") + 1)
        shutil.copy2(origin, goal)

    def beside(self, prefix: str, suffix: str) -> Self:
        return type(self)(self.path.with_name(f"{prefix}{self.path.name}{suffix}"))

    def contains(self, other: Self) -> bool:
        return other.path.resolve().is_relative_to(self.path.resolve())

    def rename(self, target: Self) -> None:
        self.path.rename(target.path)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


class HadoopFiles:
    """A folder of any file system that Hadoop knows, through the session's JVM."""

    def __init__(self, address: str, spark: SparkSession) -> None:
        self.address = address.rstrip("/")
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self._root = self._path("")
        with _os_errors():
            self._system = self._root.getFileSystem(self._conf)

    def __str__(self) -> str:
        return self.address

    def exists(self) -> bool:
        with _os_errors():
            return bool(self._system.exists(self._root))

    def changed_s(self, below: str) -> dict[str, float]:
        try:
            with _os_errors():
                return {
                    str(each.getPath().getName()): each.getModificationTime() / 1000
                    for each in self._system.listStatus(self._path(below))
                }
        except FileNotFoundError:
            return {}

    def files(self) -> list[str]:
        found = []
        with _os_errors():
            root = self._system.makeQualified(self._root).toUri().getPath().rstrip("/") + "/"
            entries = self._system.listFiles(self._root, True)
            while entries.hasNext():
                found.append(str(entries.next().getPath().toUri().getPath()).removeprefix(root))
        return found

    def read(self, name: str) -> str | None:
        try:
            with _os_errors():
                stream = self._system.open(self._path(name))
                try:
                    return bytes(stream.readAllBytes()).decode("utf-8")
                finally:
                    stream.close()
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        with _os_errors():
            path = self._path(name)
            stream = self._system.create(path, True)
            try:
                stream.write(bytearray(text.encode("utf-8")))
                stream.close()  # an object store has it from here on
            except Exception:
                with suppress(Py4JError):
                    self._give_up(stream, path)
                raise

    def copy(self, name: str, target: Self, copied: str) -> None:
        with _os_errors():
            goal = target._path(copied)
            target._system.mkdirs(goal.getParent())
            self._jvm.org.apache.hadoop.fs.FileUtil.copy(
                self._system, self._path(name), target._system, goal, False, self._conf
            )

    def beside(self, prefix: str, suffix: str) -> Self:
        above, _, name = self.address.rpartition("/")
        return type(self)(f"{above}/{prefix}{name}{suffix}", self._spark)

    def contains(self, other: Self) -> bool:
        return f"{other.address}/".startswith(f"{self.address}/")

    def rename(self, target: Self) -> None:
        with _os_errors():
            if not self._system.rename(self._root, target._root):
                raise OSError(f"{self} cannot be renamed to {target}")

    def remove(self) -> None:
        with _os_errors():
            self._system.delete(self._root, True)

    def _give_up(self, stream: Any, path: Any) -> None:
        """Leave nothing of a file that could not be written: an upload that is closed is kept."""
        if stream.hasCapability("fs.capability.outputstream.abortable"):
            stream.abort()
            stream.close()
            return
        with suppress(Py4JError):
            stream.close()
        self._system.delete(path, False)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.address}/{name}".rstrip("/"))


def _raise(problem: OSError) -> None:
    raise problem


def _make_alike(model: Path, folder: Path, depth: int) -> None:
    """Make a folder, and as many in all above it as ``depth``, with the rights of another."""
    if folder.is_dir():
        return
    if depth > 1:
        _make_alike(model.parent, folder.parent, depth - 1)
    folder.mkdir(parents=True)
    shutil.copystat(model, folder)
    folder.chmod(folder.stat().st_mode | stat.S_IRWXU)  # of one that is read-only nothing is made


@contextmanager
def _os_errors() -> Iterator[None]:
    """Turn what Hadoop throws into the errors of Python."""
    try:
        yield
    except Py4JJavaError as error:
        thrown = error.java_exception
        kind: Callable[[str], OSError] = OSError
        if str(thrown.getClass().getSimpleName()) == "FileNotFoundException":
            kind = FileNotFoundError
        raise kind(first_line(str(thrown.toString()))) from None
    except (Py4JError, PySparkException) as error:
        raise OSError(first_line(str(error))) from None
