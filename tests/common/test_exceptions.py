"""Errors of Spark, Py4J and Python in one line."""

import traceback

from slackwater.common.exceptions import first_line

PROXY = "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: "
WORKER = "org.apache.spark.api.python.PythonException: "
JAVA = "\n\n\tat py4j.Protocol.getReturnValue(Protocol.java:476)\nCaused by: X: Traceback: no\n"


def raised(error: Exception) -> str:
    """Return what Python would print."""
    return "".join(traceback.format_exception(error))


def caught(message: str, cause: Exception | None = None) -> Exception:
    try:
        raise ValueError(message) from cause
    except ValueError as error:
        return error


def test_an_error_of_a_user_s_function_is_told_by_its_type_and_message() -> None:
    for wrapper in (PROXY, WORKER):
        text = wrapper + raised(caught("cannot parse row 2000")) + JAVA
        assert first_line(text) == "ValueError: cannot parse row 2000"


def test_of_errors_that_follow_each_other_the_last_counts() -> None:
    text = raised(caught("no such row", cause=caught("no such file")))
    assert first_line(PROXY + text + JAVA) == "ValueError: no such row"


def test_further_lines_of_a_message_are_left_out() -> None:
    text = raised(caught("cannot parse\nRow: 2000\nTry: again"))
    assert first_line(PROXY + text + JAVA) == "ValueError: cannot parse"


def test_a_trace_that_was_cut_off_is_told_as_it_is() -> None:
    assert first_line(WORKER + "Traceback (most recent call last):").startswith(WORKER)


def test_other_errors_stay_as_they_are() -> None:
    assert first_line("java.io.IOException: no space\n\tat a.b(c.java)") == (
        "java.io.IOException: no space"
    )
    assert first_line(" \n") == "failed"
