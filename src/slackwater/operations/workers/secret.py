"""The token that the members of a fleet share: from the environment or a file of mode 0600."""

import os
import secrets
import stat
from pathlib import Path

from slackwater.core.errors import UsageError

VARIABLE = "SLACKWATER_TOKEN"
LEAST_LENGTH = 16


def read_token(path: Path) -> bytes:
    """Read the token; say what to do where there is none that can be trusted."""
    text = os.environ.get(VARIABLE)
    if text is None:
        text = _from_file(path)
    if len(text) < LEAST_LENGTH:
        raise UsageError(f"the token is too short: {LEAST_LENGTH} characters at least")
    return text.encode()


def make_token(path: Path) -> None:
    """Make a new one in a file of our own, unless there is one already."""
    if VARIABLE in os.environ or path.exists():
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))


def _from_file(path: Path) -> str:
    try:
        info = path.stat()
        text = path.read_text().strip()
    except OSError:
        raise UsageError(f"no token: set {VARIABLE}, or copy the supervisor's to {path}") from None
    if info.st_uid != os.getuid() or stat.S_IMODE(info.st_mode) & 0o077:
        raise UsageError(f"{path} must belong to you with mode 0600: chmod 600 {path}")
    return text
