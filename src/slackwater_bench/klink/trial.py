"""One trial: a fleet of queries under one policy on a Spark of its own, for a while."""

import random
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from slackwater.traffic import parse_delays, parse_rate
from slackwater_bench.options import option
from slackwater_bench.rivals import ArmTrial
from slackwater_bench.workloads.catalog import (
    check_options,
    make_workloads,
    window_of,
    workload_class,
)

if TYPE_CHECKING:
    from slackwater_bench.workloads.base import Workload

START_LIMIT_S = 300.0  # for all queries to reach their first trigger
DRAIN_LIMIT_S = 90.0  # how long results of measured windows are waited for after the last of them


@dataclass(frozen=True, slots=True)
class PolicyTrial(ArmTrial):
    """What to run. Everything random in it follows from ``seed``."""

    runner: ClassVar[str] = "slackwater_bench.klink.measurement:run"

    policy: str
    profile: str = "tuned"
    workload: str = "ysb"
    queries: int = 8
    seconds: float = option(30.0, "Measured time of a trial.", least=1)
    warmup_s: float = option(15.0, "Seconds before it that do not count.", least=0)
    rate: str = option("1000", "Events/s of each query; steps:… or burst:…")
    source: str = option(
        "feed",
        "feed, or kafka: a broker of its own, a topic for each query, Spark's connector.",
        choices=("feed", "kafka"),
    )
    # Filled in at once where it is not given.
    window_s: float | None = option(None, "Window length in seconds; default: the workload's.")
    slide_s: float | None = option(None, "Seconds between two starts; default likewise.")
    delays: str = option("uniform:0:300ms", "Network delays of events.")
    # Else each query has a random phase.
    aligned: bool = option(False, "All windows end together.")
    campaigns: int = option(100, "Groups of a ysb result.", least=1)
    partitions: int = 1
    slots: int | None = option(None, "C; default: 1.5 for each core.")
    gate: str = option(
        "auto", "auto, clock, source or none.", choices=("auto", "clock", "source", "none")
    )
    controller: str = option("process", "process or thread.", choices=("process", "thread"))
    shuffle_partitions: int = option(2, "Spark's, the same for all arms.", least=1)
    master: str | None = option(None, "Spark master; default local[*].")
    seed: int = option(1, "All phases, delays and events follow from it.")
    options: dict[str, Any] = option(
        dict,
        "Of the workload, key=value: variant=statistics. May be repeated.",
        flags="--option",
    )
    heap: str | None = option(None, "Of Spark's driver, such as 512m.")
    # They are measured too.
    backlog_s: float = option(0.0, "Seconds of events that wait at the start.", least=0)
    trigger_s: float | None = None  # a processing-time trigger; None: as fast as it goes
    fair: bool = False  # Spark's FAIR scheduler, a pool for each query
    parameters: dict[str, Any] = field(default_factory=dict)  # for the policy's constructor
    one_batch: str = "auto"  # or off: a window takes two batches

    def __post_init__(self) -> None:
        parse_delays(self.delays)
        parse_rate(self.rate)
        check_options(self.workload, self.options)
        window_s, slide_s = window_of(self.workload, self.window_s, self.slide_s)
        object.__setattr__(self, "window_s", window_s)
        object.__setattr__(self, "slide_s", slide_s)

    @property
    def expected_s(self) -> float:
        """Guess how long it takes; its queries start one after another."""
        return self.around_s + self.queries + self.warmup_s + self.seconds

    def workloads(self, start_s: float) -> "dict[str, Workload]":
        """Return the queries by name, each with traffic and phase of its own."""
        kind = workload_class(self.workload)
        own: dict[str, Any] = {"window_s": self.window_s, "slide_s": self.slide_s}
        if any(each.name == "campaigns" for each in fields(kind)):
            own["campaigns"] = self.campaigns
        return make_workloads(
            kind,
            self.queries,
            self.seed,
            lambda chance: 0.0 if self.aligned else _phase_s(chance, self.slide_s or 0.0),
            own | self.options,
            start_s=start_s,
            rate=self.rate,
            delays=self.delays,
            partitions=self.partitions,
        )


def _phase_s(chance: random.Random, slide_s: float) -> float:
    """Return where windows begin, in whole milliseconds: those of Kafka tell nothing finer."""
    return round(chance.uniform(0, slide_s), 3)
