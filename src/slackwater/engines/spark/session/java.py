"""Is there a Java that Spark can start on?"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.errors import UsageError

OLDEST_JAVA = 17  # Spark 4 is compiled for it
_ANSWER_LIMIT_S = 30.0  # for `java -version` on a machine that is very busy

_ADVICE = f"install Java {OLDEST_JAVA} or newer, or set JAVA_HOME to it"


@dataclass(frozen=True, slots=True)
class JavaVersion:
    """The Java that Spark will run on."""

    major: int  # 17
    text: str  # 17.0.15
    executable: Path


def parse_java_version(text: str) -> int:
    """Read the major number of a Java version.

    >>> parse_java_version("17.0.15"), parse_java_version("21-ea"), parse_java_version("1.8.0_402")
    (17, 21, 8)
    """
    numbers = [int(part) for part in re.findall(r"\d+", text)]
    if not numbers:
        raise UsageError(f"cannot tell which Java this is ({text!r}): {_ADVICE}")
    old_scheme = numbers[0] == 1 and len(numbers) > 1
    return numbers[1] if old_scheme else numbers[0]


def find_java() -> Path:
    """Find the executable that ``spark-submit`` would start: ``JAVA_HOME``, then the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        if not os.access(executable, os.X_OK):
            raise UsageError(f"JAVA_HOME is {home}, but {executable} is no program: {_ADVICE}")
        return executable
    found = shutil.which("java")
    if found is None:
        raise UsageError(f"no Java found, and Spark needs one: {_ADVICE}")
    return Path(found)


def check_java() -> JavaVersion:
    """Return the Java that Spark will start on, or raise a :class:`UsageError` if it cannot."""
    executable = find_java()
    text = _version_from_release_file(executable) or _version_from_program(executable)
    major = parse_java_version(text)
    if major < OLDEST_JAVA:
        raise UsageError(f"{executable} is Java {text}, too old for Spark: {_ADVICE}")
    return JavaVersion(major=major, text=text, executable=executable)


def _version_from_release_file(executable: Path) -> str | None:
    """Read what the ``release`` file beside a JDK says: that is free, starting a JVM is not."""
    try:
        text = (executable.resolve().parent.parent / "release").read_text()
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE)
    return match.group(1) if match else None


def _version_from_program(executable: Path) -> str:
    """Ask ``java -version``."""
    try:
        answer = subprocess.run(
            [executable, "-version"],
            check=False,
            capture_output=True,
            text=True,
            timeout=_ANSWER_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{executable} does not run ({error}): {_ADVICE}") from error
    match = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    if match is None:
        raise UsageError(f"{executable} -version does not tell its version: {_ADVICE}")
    return match.group(1)
