"""Says of a comparison on a mixed fleet which bars klink meets: against rivals, and on its own."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from slackwater.report.result import BenchResult
from slackwater_bench.footprint import HEAP
from slackwater_bench.journal import Entry
from slackwater_bench.mixed.shape import USUAL

OURS = "klink"
RIVALS = "spark"  # how the names of all arms begin that are Spark itself

WINDOWED = 0.25  # of the best rival's latency, above what the source alone makes
NO_WORSE = 1.0  # of the best rival's age
DASHBOARD = "dashboards (update)"
DASHBOARD_S = 2.0  # mean age
KEPT = 0.99  # of the time: how long results are no older than they may be
CPU = 0.8  # of the rival's that is best at most kinds
PYTHON = 0.015  # of the fleet's CPU: driver's Python and controller
CONTROLLER = 0.01  # of the machine
FLAT_PERCENT = 5.0  # growth of memory and open files
LONG_S = 300.0  # below, a JVM is still growing
BESIDE_IDLE = 1.2  # of its seconds alone: a kind beside silent and slow queries
BESIDE_SINKS = 1.1  # and beside sinks that sleep
NO_HARM = 1.1  # of the best rival's seconds, in fleets made to do harm
UNCOMPARED = ("silent", "slow source", "slow sink")  # that are what the others run beside


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: what was to be shown, and what was found."""

    bar: str
    value: float
    limit: float
    at_least: bool = False  # else at most

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def to_json(self) -> Entry:
        """Return it with keys as in docs/bench-json.md."""
        return asdict(self) | {"met": self.met}


def verdict(result: BenchResult, alone: BenchResult | None = None) -> Entry | None:
    """Judge the runs of a comparison; ``None`` where klink is not among its arms.

    Parameters
    ----------
    alone
        The same fleet without what it now runs beside: silent queries, or sinks that sleep.
    """
    runs = [run for run in result["runs"] if "error" not in run]
    ours = [run for run in runs if run["policy"] == OURS]
    rivals: dict[str, list[Entry]] = {}
    for run in runs:
        if run["policy"].startswith(RIVALS):
            rivals.setdefault(run["policy"], []).append(run)
    if not ours:
        return None
    kinds = {name: _compared(name, ours, rivals) for name in ours[0]["kinds"]}
    settings = result["settings"]
    if settings.get("made", USUAL) != USUAL:
        bars = [*_no_harm(kinds), *_sound(ours)]
        return {"arm": OURS, "kinds": kinds, "bars": [bar.to_json() for bar in bars]}
    bars = [*_against_rivals(kinds, ours, rivals), *_of_ours(ours, settings)]
    if alone is not None:
        bars += _against_alone(ours, settings, alone)
    return {"arm": OURS, "kinds": kinds, "bars": [bar.to_json() for bar in bars]}


def _compared(kind: str, ours: Sequence[Entry], rivals: Mapping[str, Sequence[Entry]]) -> Entry:
    """Compare one kind with the rival that is best at it.

    Each arm above its own sources: those of another run deliver at other moments of a second.
    """
    found_s, above_s = _seconds(kind, ours), _above_source_s(kind, ours)
    rivals_s = {arm: _above_source_s(kind, runs) for arm, runs in rivals.items()}
    known = {arm: seconds for arm, seconds in rivals_s.items() if seconds and seconds > 0}
    best = min(known, key=known.__getitem__) if known else None
    ratio = None
    if above_s is not None and best is not None:
        ratio = round(max(0.0, above_s) / known[best], 4)
    every = [*ours, *(run for runs in rivals.values() for run in runs)]
    means_s = [_seconds(kind, runs) for runs in rivals.values()]
    return {
        "measure": ours[0]["kinds"][kind]["measure"],
        "seconds": found_s,
        "above_s": above_s,
        "best": best,
        "best_s": None if best is None else _seconds(kind, rivals[best]),
        "best_above_s": None if best is None else known[best],
        "least_s": min(filter(None, means_s), default=None),
        "source_s": mean_of([run["kinds"][kind]["source_s"] for run in _having(kind, every)]),
        "ratio": ratio,
    }


def _against_rivals(
    kinds: Mapping[str, Entry], ours: Sequence[Entry], rivals: Mapping[str, Sequence[Entry]]
) -> Iterator[Bar]:
    for name, kind in kinds.items():
        if kind["ratio"] is None:
            continue
        if kind["measure"] == "latency":
            yield Bar(f"{name}: of the best rival, above the source", kind["ratio"], WINDOWED)
        else:
            yield Bar(f"{name}: of the best rival", kind["ratio"], NO_WORSE)
    best = Counter(kind["best"] for kind in kinds.values() if kind["best"] is not None)
    if best:  # who does little uses little
        cpu_s = _figure(rivals[best.most_common(1)[0][0]], "cpu_s")
        yield Bar("CPU, of the rival best at most kinds", _figure(ours, "cpu_s") / cpu_s, CPU)


def _no_harm(kinds: Mapping[str, Entry]) -> Iterator[Bar]:
    for name, kind in kinds.items():
        if kind["seconds"] is not None and kind["least_s"]:
            share = round(kind["seconds"] / kind["least_s"], 4)
            yield Bar(f"{name}: of the best rival", share, NO_HARM)


def _sound(ours: Sequence[Entry]) -> Iterator[Bar]:
    """Yield that all ran, and that every result came and was right."""
    # Most that failed have ended, too; some failed after those that were alive were counted.
    gone = sum(max(run["queries"] - run["alive"], len(run["failures"])) for run in ours)
    yield Bar("queries that ended or failed", gone, 0.0)
    yield Bar("queries with wrong results", sum(len(run["mistakes"]) for run in ours), 0.0)
    missing = sum(kind["missing"] for run in ours for kind in run["kinds"].values())
    yield Bar("windows that did not come", missing, 0.0)


def _of_ours(ours: Sequence[Entry], settings: Mapping[str, Any]) -> Iterator[Bar]:
    """Yield what klink must reach whatever the others do."""
    usual = settings.get("scale") == 1 and settings.get("busy") is None
    if usual and (age_s := _seconds(DASHBOARD, ours)) is not None:
        yield Bar("dashboards: mean age, s", age_s, DASHBOARD_S)
    for name in ours[0]["kinds"] if usual else ():
        kept = mean_of([run["kinds"][name]["kept"] for run in ours if name in run["kinds"]])
        if kept is not None:
            yield Bar(f"{name}: share of the time with its target kept", kept, KEPT, True)
    yield Bar("Python of driver and controller, of all CPU", _figure(ours, "python_share"), PYTHON)
    share = _figure(ours, "controller_share")
    yield Bar("controller, of the machine", share, CONTROLLER)
    yield from _sound(ours)
    if ours[0]["seconds"] >= LONG_S:
        name, percent = max(_grown(ours).items(), key=lambda item: item[1])
        yield Bar(f"largest growth of memory and files, %: {name}", percent, FLAT_PERCENT)


def _grown(runs: Sequence[Entry]) -> dict[str, float]:
    """Return by how many percent each part of the footprint grew; of the heap, what was left.

    >>> run = {"heap_collected_bytes": [100, 103], "growth_percent": {"driver_files": 1.0}}
    >>> {name: round(percent, 2) for name, percent in _grown([run]).items()}
    {'driver_files': 1.0, 'heap_live_bytes': 3.0}
    """
    grown = [run["growth_percent"] | {HEAP: _heap_percent(run)} for run in runs]
    return {key: sum(each.get(key, 0.0) for each in grown) / len(grown) for key in grown[0]}


def _heap_percent(run: Entry) -> float:
    before, after = map(float, run["heap_collected_bytes"])
    return 100 * (after / before - 1)


def _against_alone(
    ours: Sequence[Entry], settings: Mapping[str, Any], alone: BenchResult
) -> Iterator[Bar]:
    runs = [r for r in alone["runs"] if r["policy"] == OURS and "error" not in r]
    sinks = settings.get("sinks") != alone["settings"].get("sinks")
    for name in ours[0]["kinds"]:
        now_s, before_s = _seconds(name, ours), _seconds(name, runs)
        if name not in UNCOMPARED and now_s is not None and before_s:
            limit = BESIDE_SINKS if sinks else BESIDE_IDLE
            yield Bar(f"{name}: of its seconds alone", round(now_s / before_s, 4), limit)


def _seconds(kind: str, runs: Sequence[Entry]) -> float | None:
    return mean_of([run["kinds"][kind]["seconds"]["mean"] for run in _having(kind, runs)])


def _above_source_s(kind: str, runs: Sequence[Entry]) -> float | None:
    """Return the mean less what each run's own sources make; of ages that is nothing."""
    return mean_of([_above_s(run["kinds"][kind]) for run in _having(kind, runs)])


def _above_s(kind: Entry) -> float | None:
    source_s = kind["source_s"] if kind["measure"] == "latency" else 0.0
    mean_s = kind["seconds"]["mean"]
    return None if mean_s is None or source_s is None else float(round(mean_s - source_s, 6))


def _having(kind: str, runs: Sequence[Entry]) -> list[Entry]:
    return [run for run in runs if kind in run["kinds"]]


def _figure(runs: Sequence[Entry], key: str) -> float:
    return mean_of([run[key] for run in runs]) or 0.0


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean of what is known.

    >>> mean_of([1.0, None, 3.0]), mean_of([None])
    (2.0, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
