"""What the controller is told of a query before it runs."""

from slackwater.core.errors import UsageError
from slackwater.core.model import QuerySpec
from slackwater.core.windows import Deadlines

USUAL_WAIT_S = 10.0
WINDOWS_OF_WAIT = 2.5  # a query is served before all others after half of its bound


def max_wait_s(stated_s: float | None, deadlines: Deadlines) -> float:
    """Return the bound on waiting: as stated, else one that leaves its windows time to fill.

    >>> from slackwater.core import Window
    >>> max_wait_s(None, Deadlines()), max_wait_s(None, Deadlines((Window("tumbling", 60, 60),)))
    (10.0, 150.0)
    """
    if stated_s is not None:
        return stated_s
    delays = (stream.watermark_delay_s or 0.0 for stream in deadlines.inputs)
    longest_s = max((window.slide_s for window in deadlines.closing), default=0.0)
    return max(USUAL_WAIT_S, WINDOWS_OF_WAIT * longest_s + max(delays, default=0.0))


def refuse_unknown_choice(one_batch: str) -> str:
    """Return the choice of one batch a window, if it is one."""
    if one_batch not in ("auto", "off"):
        raise UsageError(f"one_batch is auto or off, not {one_batch!r}")
    return one_batch


def query_spec(
    name: str,
    priority: float,
    stated_wait_s: float | None,
    deadlines: Deadlines,
    target_s: float | None = None,
    idle_after_s: float | None = None,
) -> QuerySpec:
    """Make a spec of what a user states; refuse what makes no sense."""
    wait_s = max_wait_s(stated_wait_s, deadlines)
    if priority < 0:
        raise UsageError(f"{name}: priority must not be negative ({priority})")
    if wait_s <= 0:
        raise UsageError(f"{name}: max_wait must be positive ({wait_s})")
    if idle_after_s is not None and idle_after_s <= 0:
        raise UsageError(f"{name}: idle_after must be positive ({idle_after_s})")
    return QuerySpec(
        name, priority, wait_s, deadlines, target_s=target_s, idle_after_s=idle_after_s
    )
