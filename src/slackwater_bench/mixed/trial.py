"""One trial of a mixed fleet under one policy."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from slackwater_bench.mixed.shape import USUAL
from slackwater_bench.options import option
from slackwater_bench.rivals import ArmTrial

if TYPE_CHECKING:
    from slackwater_bench.mixed.kinds import Kind


@dataclass(frozen=True, slots=True)
class MixedTrial(ArmTrial):
    """What to run."""

    runner: ClassVar[str] = "slackwater_bench.mixed.measurement:run"

    policy: str
    profile: str = "tuned"
    seconds: float = option(60.0, "Measured time of a trial.", least=1)
    warmup_s: float = option(30.0, "Seconds before it that do not count.", least=0)
    made: str = option(
        USUAL,
        "A fleet made to do harm instead: sinks that sleep 8 s, triggers of 0.2 s, one huge query, "
        "bursts that come together. Klink is then to be within 10 % of the best of Spark.",
        flags="--fleet",
        choices=(USUAL, "sinks", "triggers", "huge", "bursts"),
    )
    scale: float = option(1.0, "Times as many queries of each kind.", least=0.1)
    busy: int | None = option(
        None, "So many queries with input, in the same proportions, instead of --scale.", least=1
    )
    idle: int = option(0, "Silent queries beside them.", least=0)
    slow: int = option(
        0, "Queries beside them that get a row a second for windows of a minute.", least=0
    )
    sinks: int | None = option(None, "Sinks that sleep 4 s; default: as scale says.", least=0)
    promise: bool = option(
        False, "State to the fleet how old results may be; judged by it they are anyway."
    )
    slots: int | None = option(None, "C; default: 1.5 for each core.")
    master: str | None = option(None, "Spark master; default local[*].")
    trigger_s: float | None = None
    fair: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    one_batch: str = "auto"

    def fleet(self) -> "dict[str, Kind]":
        """Return its queries by name."""
        from slackwater_bench.mixed.harm import harmful
        from slackwater_bench.mixed.kinds import fleet_of

        if self.made != USUAL:
            return harmful(self.made)
        return fleet_of(self.scale, self.sinks, self.idle, busy=self.busy, slow=self.slow)

    @property
    def expected_s(self) -> float:
        """Guess how long it takes; its queries start one after another."""
        return self.around_s + len(self.fleet()) + self.warmup_s + self.seconds
