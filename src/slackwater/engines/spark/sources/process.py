"""What the Python processes of our streaming sources share: their clock, their end."""

import gc
import os
import sys
import time
from functools import lru_cache


def now_us() -> int:
    """Return microseconds since the epoch."""
    return time.time_ns() // 1000


def end_quietly() -> None:
    """Leave without a traceback when Spark has closed the connection because the query stopped.

    To be called from a stream reader's ``stop``. Spark's runner treats the closed connection as an
    error, tries to report it through that same connection, and prints the failure of that; with
    many queries a clean stop would fill the terminal. Real errors of a reader are still reported.
    """
    if isinstance(sys.exc_info()[1], EOFError):
        os._exit(0)


@lru_cache(maxsize=1)  # once in a process
def spare_collections() -> None:
    """Keep garbage collection from what is loaded by now.

    Spark's Python worker runs a full collection after every task. Walking through all loaded
    modules takes 15 ms, several times as long as reading a micro-batch.
    """
    gc.freeze()
