"""Writes the files that queries over files read: one every second, as a producer would."""

import os
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from slackwater.common.procfs import thread_cpu_s
from slackwater.core.clock import RealClock, sleep_until
from slackwater.core.protocols import Clock

EVERY_S = 1.0
ROWS_A_SECOND = 50
FILE_SCHEMA = "timestamp TIMESTAMP, value LONG"


class FileWriter:
    """Writes into some folders until it is closed."""

    def __init__(self, folders: list[Path], clock: Clock = RealClock()) -> None:
        self._folders, self._clock = folders, clock
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="file-writer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write no more."""
        self._closed.set()
        self._thread.join(timeout=5)

    def cpu_s(self) -> float:
        """Return the CPU time that writing has taken so far."""
        return thread_cpu_s(self._thread.native_id)

    def _run(self) -> None:
        first_s, number = self._clock.now(), 0
        while not self._closed.is_set():
            begin_s = first_s + number * EVERY_S
            sleep_until(begin_s + EVERY_S, self._clock)
            table = _table(begin_s, number)
            for folder in self._folders:
                hidden = folder / f".{number:06}"
                pq.write_table(table, hidden)
                os.replace(hidden, folder / f"{number:06}.parquet")
            number += 1


def _table(begin_s: float, number: int) -> pa.Table:
    rows = round(ROWS_A_SECOND * EVERY_S)
    step_us = round(1e6 / ROWS_A_SECOND)
    first_us = round(begin_s * 1e6)
    times = [first_us + step_us * place for place in range(rows)]
    return pa.table(
        {
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
            "value": pa.array(range(number * rows, (number + 1) * rows), pa.int64()),
        }
    )
