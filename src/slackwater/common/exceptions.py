"""What an exception says, in one line for people."""


def first_line(text: str) -> str:
    """Return the first line that says something.

    >>> first_line("An error occurred while calling o7.start.\\n: java.io.IOException: no space")
    'java.io.IOException: no space'
    """
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):  # Py4J's
        return lines[1]
    return lines[0] if lines else "failed"
