"""One trial: a number of queries, from Kafka to Kafka, in one of the ways."""

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from slackwater.core.errors import UsageError
from slackwater.traffic import parse_rate
from slackwater_bench.options import option
from slackwater_bench.trial import Trial
from slackwater_bench.workloads.catalog import make_workloads

if TYPE_CHECKING:
    from slackwater_bench.versus.ad_views import AdViews

KLINK = "klink"  # append mode
KLINK_UPDATE = "klink-update"  # update mode, refreshed as often as a target says
REAL_TIME = "real-time"  # Spark's trigger(realTime=…)
FLINK = "flink"
SPARK = "spark"  # micro-batches, one after another, in append mode
ARMS = (KLINK, KLINK_UPDATE, REAL_TIME, FLINK, SPARK)
UPDATING = frozenset((KLINK_UPDATE, REAL_TIME))
_DELAYS = "uniform:0:300ms"


@dataclass(frozen=True, kw_only=True)
class VersusTrial(Trial):
    """Windows of views, a topic for each query. Everything random follows from ``seed``."""

    runner: ClassVar[str] = "slackwater_bench.versus.measurement:run"

    arm: str
    queries: int
    seconds: float = option(60.0, "Measured time of a trial.", least=3)
    warmup_s: float = option(30.0, "Seconds before it that do not count.", least=0)
    rate: str = option("1000", "Events/s of each query; steps:… or burst:…")
    window_s: float = option(3.0, "Window length in seconds.", least=0.1)
    checkpoint_s: float = option(
        60.0, "Between two checkpoints of Flink; a batch of Real-Time Mode.", least=5
    )
    target_s: float = option(1.0, "How old results of klink-update may be.", least=0.1)
    seed: int = option(1, "All phases, delays and events follow from it.")

    def __post_init__(self) -> None:
        parse_rate(self.rate)
        if self.arm and self.arm not in ARMS:
            raise UsageError(f"--arms takes {', '.join(ARMS)}, not {self.arm!r}")

    @property
    def updates(self) -> bool:
        """Tell whether counts are written as they grow, and not once."""
        return self.arm in UPDATING

    @property
    def expected_s(self) -> float:
        """Guess how long it takes; queries start one after another."""
        return self.around_s + 3 * self.queries + self.warmup_s + self.seconds

    def workloads(self, start_s: float) -> "dict[str, AdViews]":
        """Return the queries by name, each with traffic and phase of its own."""
        from slackwater_bench.versus.ad_views import AdViews

        return make_workloads(
            AdViews,
            self.queries,
            self.seed,
            self._phase_s,
            {"window_s": self.window_s},
            start_s=start_s,
            rate=self.rate,
            delays=_DELAYS,
        )

    def _phase_s(self, chance: random.Random) -> float:
        """Return where windows begin, in whole milliseconds: those of Kafka tell nothing finer."""
        return round(chance.uniform(0, self.window_s), 3)


def require(arms: tuple[str, ...]) -> None:
    """Refuse arms that cannot run here at all."""
    for arm in arms:
        VersusTrial(arm=arm, queries=1)
    if FLINK in arms:
        from slackwater_bench.flink import find_flink, kafka_connector

        find_flink()
        kafka_connector()
    if REAL_TIME in arms and not _windows_in_real_time():
        raise UsageError("real-time: windows in Real-Time Mode need Spark 4.3; leave it out")


def _windows_in_real_time() -> bool:
    import pyspark

    return tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= (4, 3)
