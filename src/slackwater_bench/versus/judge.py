"""Judges what an engine wrote into a topic: whether windows are right, and when they stood."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from slackwater_bench.workloads.base import Rows, WindowRows


class Written(NamedTuple):
    """A row of the topic of results."""

    at_s: float  # when the broker took it
    end_us: int  # of its window
    key: str
    value: int


@dataclass
class Standing:
    """What a topic says of one window."""

    rows: Rows
    since_s: float  # nothing has changed


@dataclass
class Verdict:
    """Windows of one query, or of several."""

    expected: int = 0  # with rows
    emitted: int = 0  # of these windows, those of which anything came
    wrong: int = 0  # of these, those that never became what they should be
    latencies_s: list[float] = field(default_factory=list)  # of those that are right

    @property
    def complete(self) -> bool:
        """Tell whether every window is there and right."""
        return len(self.latencies_s) == self.expected

    def add(self, other: "Verdict") -> None:
        """Count another query's windows as well."""
        self.expected += other.expected
        self.emitted += other.emitted
        self.wrong += other.wrong
        self.latencies_s += other.latencies_s


def judge(truth: WindowRows, rows: Sequence[Written], appended: bool) -> Verdict:
    """Compare a query's rows with the truth.

    Parameters
    ----------
    truth
        What each window of the measured time must have.
    rows
        All that the topic holds, in its order.
    appended
        A row is final, and may come once only; else the last of a key counts.

    >>> rows = [Written(3.1, 3_000_000, "ad", 1), Written(3.4, 3_000_000, "ad", 2)]
    >>> judge({3_000_000: Counter({("ad", 2): 1})}, rows, appended=False).latencies_s
    [0.4]
    """
    standing = _appended(rows) if appended else _updated(rows)
    found = Verdict()
    for end_us, wanted in truth.items():
        window = standing.get(end_us)
        found.expected += bool(wanted)
        if window is None:
            continue
        found.emitted += 1
        if window.rows == wanted:
            found.latencies_s.append(round(window.since_s - end_us / 1e6, 3))
        else:
            found.wrong += 1
    return found


def _appended(rows: Sequence[Written]) -> dict[int, Standing]:
    found: dict[int, Standing] = {}
    for at_s, end_us, key, value in rows:
        window = found.setdefault(end_us, Standing(Counter(), at_s))
        window.rows[key, value] += 1
        window.since_s = max(window.since_s, at_s)
    return found


def _updated(rows: Sequence[Written]) -> dict[int, Standing]:
    groups: dict[int, dict[str, Written]] = defaultdict(dict)
    for row in rows:
        before = groups[row.end_us].get(row.key)
        if before is None or before.value != row.value:
            groups[row.end_us][row.key] = row
    return {
        end_us: Standing(
            Counter((row.key, row.value) for row in last.values()),
            max(row.at_s for row in last.values()),
        )
        for end_us, last in groups.items()
    }
