"""Where a folder is: on this machine, or on a file system that its address names."""

import re
from pathlib import Path

from slackwater.core.errors import UsageError

# Of Spark's own file sink, which keeps a log of its batches beside the results.
FILE_FORMATS = ("parquet", "json", "csv", "orc", "text", "avro", "xml")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")


def has_scheme(place: str | Path) -> bool:
    """Tell whether an address names its file system, so that it is Spark's to read.

    >>> has_scheme("s3a://events/out"), has_scheme("file:/tmp/out"), has_scheme("out/a:b")
    (True, True, False)
    """
    return _SCHEME.match(str(place)) is not None


def local_path(place: str | Path) -> Path | None:
    """Return a path of this machine; None: the address names another file system.

    >>> local_path("out/a:b"), local_path("file:///tmp/out"), local_path("s3a://events/out")
    (PosixPath('out/a:b'), PosixPath('/tmp/out'), None)
    >>> local_path("FILE:/tmp/out"), local_path("file://localhost/tmp/out")
    (PosixPath('/tmp/out'), PosixPath('/tmp/out'))
    >>> local_path("file://other/tmp/out") is None
    True
    """
    if not has_scheme(place):
        return Path(place)
    if scheme_of(place) != "file":
        return None
    host, path = "", str(place).partition(":")[2]
    if path.startswith("//"):
        host, _, path = path[2:].partition("/")
    return Path("/" + path.lstrip("/")) if host.lower() in ("", "localhost") else None


def scheme_of(place: str | Path) -> str:
    """Return the kind of file system that an address names, ``file`` if none.

    >>> scheme_of("S3A://events/out"), scheme_of("out")
    ('s3a', 'file')
    """
    found = _SCHEME.match(str(place))
    return found[1].lower() if found else "file"


def refuse_elsewhere(what: str, place: str | Path) -> Path:
    """Return a path of this machine, or refuse the address of another file system."""
    path = local_path(place)
    if path is None:
        raise UsageError(f"{what} must be on this machine, mounted perhaps, and not at {place}")
    return path
