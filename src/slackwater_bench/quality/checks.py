"""What a fleet under changing load must have kept to, looked for in what was seen of it."""

from collections.abc import Mapping, Sequence

from slackwater_bench.quality.results import Checks, FleetRow, FleetSample, QueryFile

TOLERANCE = 0.05  # of a measured accuracy: a few thousand rows, and rates that change meanwhile
ENOUGH = 0.01  # of a decided one

Queries = Mapping[str, QueryFile]
Rows = Mapping[str, FleetRow]


def checks(queries: Queries, samples: Sequence[FleetSample]) -> Checks:
    """Count looks at which a promise was not kept, and what happened besides.

    Parameters
    ----------
    queries
        As a fleet file has them.
    samples
        As ``slackwater fleet --watch`` writes them.
    """
    decided, measured, inverted = 0, 0, 0
    for sample in samples:
        rows = {row["query"]: row for row in sample["queries"] if row["query"] in queries}
        for name, row in rows.items():
            least = queries[name].get("min_accuracy", 1.0)
            if row["phase"] != "running" or row["desired"] is None:
                continue
            decided += row["desired"] < least - ENOUGH
            accuracy = delivered(name, queries, rows)
            if accuracy is not None and not row["warming"]:
                measured += accuracy < least - TOLERANCE
        inverted += _inverted(queries, rows)
    events = samples[-1]["events"] if samples else []
    last = samples[-1]["queries"] if samples else []
    return {
        "looks": len(samples),
        "decided_below_minimum": decided,
        "measured_below_minimum": measured,
        "higher_priority_shed_first": inverted,
        "moves": [each for each in events if each["what"] == "moves"],
        "stops": [each for each in events if each["what"] == "stops"],
        "moves_without_need": sum(not each["lacked"] for each in events),
        "decided_at_the_end": min(
            (r["desired"] for r in last if r["desired"] is not None), default=None
        ),
    }


def delivered(name: str, queries: Queries, rows: Rows) -> float | None:
    """Return what a query keeps of the application's input, after what its sources keep."""
    own = _own(rows.get(name))
    above = [_own(rows.get(source)) for source in queries[name].get("reads", [])]
    if own is None or None in above:
        return None
    return own * min((each for each in above if each is not None), default=1.0)


def _own(row: FleetRow | None) -> float | None:
    accuracy = row["accuracy"] if row is not None else None
    return accuracy["delivered"] if accuracy is not None else None


def _inverted(queries: Queries, rows: Rows) -> int:
    """Count queries that are shed though on each of their workers a lesser one could give."""
    found = 0
    sinks = {name: row for name, row in rows.items() if not _feeds(name, queries)}
    for name, row in sinks.items():
        mates = [other for other in sinks if _task(other, queries) == _task(name, queries)]
        if row["desired"] is None or row["desired"] > 1 - ENOUGH or row["warming"]:
            continue
        found += all(_could_give(sinks, queries, row["priority"], rows[m]["worker"]) for m in mates)
    return found


def _could_give(sinks: Rows, queries: Queries, priority: float, worker: str) -> bool:
    return any(
        row["worker"] == worker
        and row["priority"] < priority
        and row["phase"] == "running"
        and row["desired"] is not None
        and row["desired"] > queries[name].get("min_accuracy", 1.0) + ENOUGH
        for name, row in sinks.items()
    )


def _task(name: str, queries: Queries) -> str:
    return str(queries[name].get("task", name))


def _feeds(name: str, queries: Queries) -> bool:
    return any(_task(name, queries) in query.get("reads", []) for query in queries.values())
