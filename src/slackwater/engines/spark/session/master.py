"""Which Spark master to use, and whether anything answers there."""

import os
import re
import shlex
import socket
from collections.abc import Mapping
from pathlib import Path

from slackwater.core.errors import UsageError

DEFAULT_MASTER = "local[*]"
ANSWER_LIMIT_S = 3.0  # a master that takes longer to accept a connection is as good as dead

_STANDALONE = re.compile(r"spark://(?P<hosts>[^/]+)")
_LOCAL = re.compile(r"local(\[[^\]]+\]|-cluster\[[^\]]+\])?")
_KNOWN = ("yarn", "k8s://")


def choose_master(given: str | None, conf: Mapping[str, str]) -> str | None:
    """Choose the master; ``None`` leaves what ``spark-submit`` or its files already set.

    Order: argument, ``conf``, ``SPARK_MASTER``, what is configured outside, ``local[*]``.
    """
    explicit = given or conf.get("spark.master") or os.environ.get("SPARK_MASTER")
    if explicit:
        return explicit
    return None if _configured_outside() else DEFAULT_MASTER


def is_local(master: str | None) -> bool:
    """Tell whether every process of this master runs on this host.

    >>> is_local("local[2]"), is_local("spark://127.0.0.1:7077"), is_local("spark://far:7077")
    (True, True, False)
    """
    if master is None:
        return False
    if _LOCAL.fullmatch(master):
        return True
    if not _STANDALONE.fullmatch(master):
        return False
    return all(host in ("127.0.0.1", "localhost", "::1") for host, _ in _addresses(master))


def check_master(master: str, limit_s: float = ANSWER_LIMIT_S) -> None:
    """Raise a :class:`UsageError` for a URL that is not one, or where nobody listens.

    Spark itself tries a dead master for a minute and then ends with a long stack trace.
    """
    if _LOCAL.fullmatch(master) or master.startswith(_KNOWN):
        return
    if not _STANDALONE.fullmatch(master):
        raise UsageError(
            f"{master!r} is no Spark master: use local[N], spark://HOST:PORT, yarn or k8s://…"
        )
    failures = []
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), timeout=limit_s).close()
        except OSError as error:
            failures.append(f"{host}:{port} {error.strerror or error}")
        else:
            return  # one living master of several is enough
    raise UsageError(
        f"no Spark master answers at {master} ({'; '.join(failures)}): start it or correct the URL"
    )


def _addresses(master: str) -> list[tuple[str, int]]:
    """Return the hosts and ports of ``spark://host:port,host:port``."""
    addresses = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise UsageError(f"{master!r} is no Spark master: it needs spark://HOST:PORT")
        addresses.append((host.strip("[]"), int(port)))
    return addresses


def _configured_outside() -> bool:
    """Tell whether ``spark-submit``, its arguments or ``spark-defaults.conf`` name a master."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # this process was started by spark-submit
        return True
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    if any(word == "--master" or word.startswith("spark.master=") for word in arguments):
        return True
    home = os.environ.get("SPARK_HOME", "")
    folder = os.environ.get("SPARK_CONF_DIR") or (str(Path(home) / "conf") if home else "")
    defaults = Path(folder) / "spark-defaults.conf"
    if not folder or not defaults.is_file():
        return False
    return re.search(r"^\s*spark\.master[\s=:]", defaults.read_text(), re.MULTILINE) is not None
