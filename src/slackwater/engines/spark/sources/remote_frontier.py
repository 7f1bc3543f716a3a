"""The frontier of a source that is asked over a network, or reads files.

What is asked for are the newest rows beyond those that the query has read, in the streams that it
reads: whatever is found there is read by the next batch, if that has no limit. An older event may
come last, so the frontier keeps the newest that it has seen.
"""

import json
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from py4j.java_gateway import JavaObject

from slackwater.core.errors import SlackwaterError

log = logging.getLogger("slackwater.fleet")

_UNKNOWN = "what has arrived at a source is not known: %s"
ANSWER_S = 0.25  # who answers later than this leaves it unknown: nobody waits for long


class FrontierUnknown(SlackwaterError):
    """What has arrived does not tell how far the source has come; what comes next may."""


class FrontierLost(SlackwaterError):
    """It will never be known again how far the source has come; the message says why."""


def _nothing() -> None:
    """Keep what is let go of by itself."""


class RemoteFrontier:
    """Asks in a thread of its own, and not again before it has an answer.

    Parameters
    ----------
    ask
        Returns the largest event time of what is new; None: nothing is.
    close
        Lets go of what it asks with.

    Examples
    --------
    >>> answers = iter([7, 5, None])
    >>> frontier = RemoteFrontier(lambda: next(answers))
    >>> frontier.newest_us(), frontier.newest_us(), frontier.newest_us()
    (7, 7, 7)

    Where asking fails nobody knows, until it succeeds.

    >>> frontier.newest_us() is None
    True

    What is lost is not asked for again: :class:`FrontierLost` is raised each time.
    """

    def __init__(self, ask: Callable[[], int | None], close: Callable[[], None] = _nothing) -> None:
        self._ask, self._close = ask, close
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="slackwater-source")
        self._asked: Future[int | None] | None = None
        self._newest_us: int | None = None
        self._failed = False  # the last time
        self._warned = False  # that what has arrived may not tell

    def newest_us(self) -> int | None:
        """Return the largest event time that was ever seen; None: none was, or nobody knows."""
        if self._asked is None:
            self._asked = self._thread.submit(self._ask)
            limit_s = ANSWER_S
        else:
            limit_s = 0.0  # it has been waited for before
        try:
            found_us = self._asked.result(limit_s)
        except TimeoutError:
            if not self._asked.done():
                return None
            self._fail("no answer in time")
        except FrontierLost:
            raise  # the answer is kept
        except FrontierUnknown as error:  # that may be so with each batch
            self._asked, level = None, logging.DEBUG if self._warned else logging.WARNING
            self._warned = True
            log.log(level, _UNKNOWN, error)
        except Exception as error:
            self._fail(str(error) or type(error).__name__)
        else:
            self._asked, self._failed = None, False
            known = [us for us in (self._newest_us, found_us) if us is not None]
            self._newest_us = max(known, default=None)
            return self._newest_us
        return None

    def close(self) -> None:
        """Ask no more."""
        self._thread.submit(self._close)
        self._thread.shutdown(wait=False)

    def _fail(self, why: str) -> None:
        self._asked = None
        if not self._failed:
            log.warning(_UNKNOWN, why)
        self._failed = True


def source_at(execution: JavaObject, place: int, places: int) -> JavaObject | None:
    """Return a source of an execution; None: it has not begun.

    Parameters
    ----------
    place, places
        Which of how many sources of its plan, by which Spark's own list is told from another.
    """
    sources = execution.sources()
    if sources is None or sources.size() != places:
        return None
    return sources.apply(place)


def offset_read(execution: JavaObject, place: int, places: int) -> dict[str, Any] | None:
    """Return up to where a query has read its source; None: it has not begun."""
    source = source_at(execution, place, places)
    if source is None:
        return None
    offset = execution.availableOffsets().get(source)
    return json.loads(offset.get().json()) if offset.isDefined() else None
