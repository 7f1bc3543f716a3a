"""What an exception says, in one line for people."""

_TRACEBACK = "Traceback (most recent call last):"
_JAVA_FRAME = "\tat "


def first_line(text: str) -> str:
    """Return the first line that says something; of an error in Python, its type and message.

    >>> first_line("An error occurred while calling o7.start.\\n: java.io.IOException: no space")
    'java.io.IOException: no space'
    >>> trace = 'Traceback (most recent call last):\\n  File "a.py", line 7, in f\\nValueError: no'
    >>> first_line("PythonException: " + trace + "\\n\\n\\tat org.apache.spark.Some.java")
    'ValueError: no'
    """
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):  # Py4J's
        lines = lines[1:]
    if not lines:
        return "failed"
    return _raised(text) or lines[0] if lines[0].endswith(_TRACEBACK) else lines[0]


def _raised(text: str) -> str | None:
    """Return the last line of Python's traceback; of several that follow each other, the last's.

    It is the first that is not indented: a message may have more lines, and they may be anything.
    """
    found, inside = None, False
    for line in text.splitlines():
        if line.startswith(_JAVA_FRAME):
            break
        if line.endswith(_TRACEBACK):
            inside = True
        elif inside and line and not line[0].isspace():
            found, inside = line.rstrip(), False
    return found
