"""What an exception of a query says, and whether starting the query again can help."""

MAX_RESTARTS = 5  # in a row, without a batch in between

# A query that fails with one of these has done nothing wrong: a Python process of a source did not
# connect back in time, or was killed.
_WORKER_LOST = ("failed to connect back", "Python worker exited unexpectedly")
_CONNECTION_LOST = ("java.io.EOFException", "Broken pipe", "Connection reset")
_PYTHON_SOURCE = (
    "PythonStreamingSourceRunner"  # in the trace; else it was the user's own connection
)


def first_line(text: str) -> str:
    """Return the first line that says something.

    >>> first_line("An error occurred while calling o7.start.\\n: java.io.IOException: no space")
    'java.io.IOException: no space'
    """
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):  # Py4J's
        return lines[1]
    return lines[0] if lines else "failed"


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
