"""What gates and Spark's listener report: two queues in the JVM, read many lines at once.

Each call into the JVM costs as much Python as most reports do, and a thread that wakes costs more
than that. So only what is urgent wakes the reader; what can wait a moment goes along with it.
"""

from slackwater.engines.spark.gates.method_handles import Handles, JavaObject

TAKEN = 1000  # lines of a queue at once: each may be long
KEPT = 100_000  # the queues' bound; reports beyond it are lost, gates open by max_wait
PATIENCE_MS = 500  # for something urgent: what is put off waits no longer than that
_NOTHING = ("", "null")  # somebody only woke the reader; nobody reported anything urgent
_LIST = "java.util.ArrayList"
_QUEUE = "java.util.concurrent.LinkedBlockingQueue"
_STRING = "java.lang.String"


class Reports:
    """The reports of one driver, all of them lines of text, for one thread that reads them.

    >>> Reports.lines("null"), Reports.lines("arrive run \\n\\n{}")
    ([], ['arrive run ', '{}'])
    """

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        concurrent = handles.java.util.concurrent
        self._urgent: JavaObject = concurrent.LinkedBlockingQueue(KEPT)
        self._later: JavaObject = concurrent.LinkedBlockingQueue(KEPT)
        unit = handles.type("java.util.concurrent.TimeUnit")
        poll = handles.method(_QUEUE, "poll", handles.object, handles.long, unit, of=self._urgent)
        poll = handles.insert(poll, 1, concurrent.TimeUnit.MILLISECONDS)
        patience = concurrent.atomic.AtomicReference(PATIENCE_MS)
        self._next = self._taking(handles.collect(poll, handles.number(patience)))

    def next(self) -> list[str]:
        """Wait a moment for something urgent; return all that was reported by then.

        What was put off comes last.
        """
        return self.lines(str(self._handles.call(self._next)))

    @staticmethod
    def lines(text: str) -> list[str]:
        """Return the reports in a text that was made in the JVM."""
        return [line for line in text.split("\n") if line not in _NOTHING]

    def offer(self) -> JavaObject:
        """Return ``(Object line) → boolean``: report something urgent; full queues take nothing."""
        return self._offer(self._urgent)

    def put_off(self, wake: bool = False) -> JavaObject:
        """Return ``(Object line) → boolean``: report what goes along with something urgent.

        Parameters
        ----------
        wake
            Have it read at once all the same, behind everything urgent.
        """
        put_off = self._offer(self._later)
        if not wake:
            return put_off
        handles = self._handles
        awake = handles.ignoring(handles.insert(self.offer(), 0, ""), handles.object)
        return handles.then(put_off, awake)

    def _offer(self, queue: JavaObject) -> JavaObject:
        handles = self._handles
        return handles.method(_QUEUE, "offer", handles.bool, handles.object, of=queue)

    def _taking(self, poll: JavaObject) -> JavaObject:
        """Return ``() → String``: what ``poll`` returns and all that is behind it."""
        handles, lines = self._handles, self._handles.java.util.ArrayList()
        clear = handles.method(_LIST, "clear", handles.void, of=lines)
        add = handles.method(_LIST, "add", handles.bool, handles.object, of=lines)
        taken = handles.type("java.util.Collection")
        drains = (
            handles.method(_QUEUE, "drainTo", handles.int, taken, handles.int, of=queue)
            for queue in (self._urgent, self._later)
        )
        every = [handles.insert(handles.insert(drain, 1, TAKEN), 0, lines) for drain in drains]
        between, joined = handles.type("java.lang.CharSequence"), handles.type("java.lang.Iterable")
        join = handles.static(_STRING, "join", handles.type(_STRING), between, joined)
        join = handles.insert(handles.insert(join, 1, lines), 0, "\n")
        return handles.then(clear, handles.collect(add, poll), *every, join)
