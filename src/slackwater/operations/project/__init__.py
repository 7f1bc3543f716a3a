"""A fleet project to start from: ``slackwater init``."""

import re
from importlib.resources import files
from pathlib import Path

from slackwater.core.errors import UsageError

FILES = {"fleet.toml": "fleet.toml", "pipelines.py": "pipelines.py", "gitignore": ".gitignore"}


def write(folder: Path) -> list[Path]:
    """Put a working project into a folder that has none; what was written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in write(Path(folder) / "ads"))
    ['.gitignore', 'fleet.toml', 'pipelines.py']
    """
    there = [name for name in FILES.values() if (folder / name).exists()]
    if there:
        raise UsageError(f"{folder} has a {there[0]} already; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for source, name in FILES.items():
            path = folder / name
            text = (files(__name__) / "files" / source).read_text()
            path.write_text(text.replace("NAME", _name(folder)))
            written.append(path)
        return written
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from error


def _name(folder: Path) -> str:
    """Return the fleet's name: that of its folder, as far as it can be one.

    >>> _name(Path("/srv/my ads"))
    'my-ads'
    """
    return re.sub(r"[^A-Za-z0-9_-]+", "-", folder.resolve().name).strip("-") or "fleet"
