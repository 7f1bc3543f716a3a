"""Files that others read while they are written."""

import os
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Replace a file at once.

    No reader sees half of it, and a crash leaves the old or the new one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_text(Path(folder) / "plan.json", "{}")
    ...     sorted(os.listdir(folder))
    ['plan.json']
    """
    draft = path.with_name(path.name + ".new")
    draft.write_text(text)
    os.replace(draft, path)
