"""How many rows have arrived at a source of ours, told while a micro-batch runs as well.

Spark's progress tells it once a micro-batch. A query that is behind has long ones, and when a rate
changes nobody would know until the next has ended. So the source's process says it in a small file.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from slackwater.common.files import replace_text
from slackwater.engines.spark.progress import Arrived

EVERY_S = 0.5
KEPT = 20  # looks in the file, for a reader that comes less often

Look = Callable[[], dict[str, Any] | None]  # an offset: rows "n" at a time "t", microseconds


def announce(shed: str, look: Look) -> None:
    """Tell from now on until the process ends, as long as somebody sheds.

    Parameters
    ----------
    shed
        Where the source looks for its rates; what it tells lies beside.
    look
        What has arrived. It is called in a thread of its own.
    """
    threading.Thread(
        target=_tell, args=(Path(shed), look), name="slackwater-arrivals", daemon=True
    ).start()


def _tell(shed: Path, look: Look) -> None:
    seen: deque[tuple[int, int]] = deque(maxlen=KEPT)
    while True:
        if shed.exists():
            try:
                found = look()
                if found is not None:
                    seen.append((int(found["t"]), int(found["n"])))
                    replace_text(_beside(shed), json.dumps(list(seen)))
            except Exception:  # then progress tells it once a batch, as for any other source
                return
        time.sleep(EVERY_S)


def heard(sheds: Sequence[Path]) -> list[Arrived]:
    """Of all sources of a query together, oldest first; nothing while one of them is silent."""
    series = [_read(_beside(shed)) for shed in sheds]
    length = min(map(len, series), default=0)
    newest = (each[len(each) - length :] for each in series)
    return [
        Arrived(
            rows=float(sum(rows for _, rows in looks)),
            at_s=sum(at_us for at_us, _ in looks) / len(looks) / 1e6,
        )
        for looks in zip(*newest, strict=True)
    ]


def remove(shed: Path) -> None:
    """What a source was told and has told."""
    for path in (shed, _beside(shed)):
        path.unlink(missing_ok=True)


def _beside(shed: Path) -> Path:
    return shed.with_suffix(".arrived")


def _read(path: Path) -> list[tuple[int, int]]:
    try:
        return [(int(at_us), int(rows)) for at_us, rows in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError):
        return []
