"""Whether it can help to start a query again that has failed."""

MAX_RESTARTS = 5  # in a row, without a batch in between

# A query that fails with one of these has done nothing wrong: a Python process of a source did not
# connect back in time, or was killed.
_WORKER_LOST = ("failed to connect back", "Python worker exited unexpectedly")
_CONNECTION_LOST = ("java.io.EOFException", "Broken pipe", "Connection reset")
_PYTHON_SOURCE = (
    "PythonStreamingSourceRunner"  # in the trace; else it was the user's own connection
)


def lost_a_worker(exception: str) -> bool:
    """Return whether a Python process of a source is to blame, not the query or its source's code.

    >>> lost_a_worker("SparkException: Python worker failed to connect back.")
    True
    >>> lost_a_worker("java.net.SocketException: Connection reset at JdbcSink.write")
    False
    """
    if any(sign in exception for sign in _WORKER_LOST):
        return True
    return _PYTHON_SOURCE in exception and any(sign in exception for sign in _CONNECTION_LOST)
