"""Waits for what may never come, but not for ever."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import TypeVar

A = TypeVar("A")


def within(limit_s: float, act: Callable[[], A]) -> A:
    """Return what ``act()`` returns; if it takes longer, leave it to a daemon thread and raise.

    >>> within(30.0, lambda: 7)
    7
    >>> import threading
    >>> within(0.01, threading.Event().wait)
    Traceback (most recent call last):
    TimeoutError: no answer within 0.01 s
    """
    answer: Future[A] = Future()

    def run() -> None:
        try:
            answer.set_result(act())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, name="slackwater-limited", daemon=True).start()
    try:
        return answer.result(limit_s)
    except NotYet:
        if answer.done():  # it was its own
            raise
        raise TimeoutError(f"no answer within {limit_s:g} s") from None
