"""How the Python process of a streaming source ends."""

import os
import sys


def end_quietly() -> None:
    """Leave without a traceback when Spark has closed the connection because the query stopped.

    To be called from a stream reader's ``stop``. Spark's runner treats the closed connection as an
    error, tries to report it through that same connection, and prints the failure of that; with
    many queries a clean stop would fill the terminal. Real errors of a reader are still reported.
    """
    if isinstance(sys.exc_info()[1], EOFError):
        os._exit(0)
