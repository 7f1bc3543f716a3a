"""``fleet.toml``: what runs, and under which policy."""

from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from slackwater.common.durations import parse_duration_s
from slackwater.common.places import FILE_FORMATS
from slackwater.common.toml_files import load_toml
from slackwater.core.errors import UsageError

FILE_NAME = "fleet.toml"
RUN_TRIGGERS = ("availableNow", "once")


def _in_seconds(stated: object) -> object:
    """Read a duration that is a text; others are checked as numbers."""
    if not isinstance(stated, str):
        return stated
    try:
        return parse_duration_s(stated)
    except UsageError:
        raise ValueError("no duration; write 2 or '2 seconds', say") from None


# Seconds, or a text such as "2 seconds".
Seconds = Annotated[float, BeforeValidator(_in_seconds), Field(gt=0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SparkSection(_Section):
    """``[spark]``"""

    master: str | None = None  # local[*] by default; spark://host:port for a cluster
    profile: Literal["tuned", "large", "stock"] = "tuned"
    conf: dict[str, str | int | float | bool] = {}  # wins over the profile


class ApproximateSection(_Section):
    """``[queries.NAME.approximate]``: arguments of ``Fleet.approximate``."""

    time: str
    window: str
    slide: str | None = None
    offset: str | None = None
    by: list[str] = []
    aggregates: dict[str, str] = Field(min_length=1)
    error: float = Field(0.05, gt=0, lt=1)
    confidence: float = Field(0.95, gt=0, lt=1)
    sampler: str = "aion"
    arrival: str | None = None  # column with arrival times, for sources that are not ours


class QuerySection(_Section):
    """``[queries.NAME]``"""

    query: str  # module:function; called with the session and the arguments
    arguments: dict[str, Any] = {}
    priority: float = Field(1.0, ge=0)
    max_wait: Seconds | None = None
    min_accuracy: float | None = Field(None, ge=0, le=1)  # its rows must be sheddable
    target: Seconds | None = None  # latency of windows, else age of results
    one_batch: Literal["auto", "off"] | None = None  # instead of the fleet's
    idle_after: Seconds | None = None  # a silent input holds nothing up then
    in_pieces: bool = False  # a backlog may be cut although the query has a watermark
    rate: float | None = Field(None, gt=0)  # events/s that are expected, for `slackwater plan`
    table: str | None = None  # written to by its name in a catalog, for writers too
    # The following are for functions that return a DataFrame; a writer brings its own.
    format: str | None = None  # noop, or that of the table
    path: str | None = None
    output_mode: Literal["append", "update", "complete"] = "append"
    trigger: str | None = None  # processing time, for example "2 seconds"; or availableNow, once
    # With one of those, for writers too: how old results may be; None: one run, and no other.
    every: Seconds | None = None
    options: dict[str, str] = {}
    checkpoint: str | None = None  # default: a folder of the query's name in `checkpoints`
    approximate: ApproximateSection | None = None  # then the function returns the input
    # The following are for `slackwater fleet`.
    workers: list[str] = []  # where it should run
    task: str | None = None  # of an application; several queries of one task are its instances
    reads: list[str] = []  # tasks whose logs it reads

    @property
    def refreshed(self) -> bool:
        """Whether it is a table that is refreshed by runs that end."""
        return self.trigger in RUN_TRIGGERS

    @property
    def interval(self) -> str | float | None:
        """How often it is to run, as far as is said."""
        return self.every if self.refreshed else self.trigger

    @model_validator(mode="after")
    def _is_refreshed_or_not(self) -> Self:
        if not self.refreshed:
            if self.every is not None:
                raise ValueError('every needs trigger = "availableNow" or "once"')
            return self
        held = ("min_accuracy", "target", "one_batch", "idle_after", "approximate")
        useless = [key for key in held if getattr(self, key) is not None]
        if useless or self.in_pieces:
            named = useless[0] if useless else "in_pieces"
            raise ValueError(f'{named} is not for trigger = "{self.trigger}": nothing is held')
        return self

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        placed = self.path is not None or "path" in map(str.lower, self.options)
        if self.table is not None and placed:
            raise ValueError("table and path are two places: give one of them")
        needs_place = (self.format or "").lower() in (*FILE_FORMATS, "delta")
        if needs_place and self.table is None and not placed:
            raise ValueError(f'format = "{self.format}" needs path = "…" or table = "…"')
        return self


class QualitySection(_Section):
    """``[quality]``: how queries with a ``min_accuracy`` are shed."""

    period: Seconds = 1.0
    headroom: Annotated[float, Field(ge=0, lt=1)] = 0.05
    counts_others: bool = True  # whether CPU that other processes use is out of reach
    batch_every: Seconds = 1.0
    drain: Seconds = 2.0
    patience: Annotated[int, Field(ge=1)] = 10  # cycles
    warmup: Seconds = 30.0


class WorkerSection(_Section):
    """``[workers.NAME]``: a Spark application of `slackwater fleet`."""

    cores: Annotated[float, Field(gt=0)] | None = None  # default: of its CPUs, or all
    cpus: list[Annotated[int, Field(ge=0)]] = []  # it is bound to these
    remote: bool = False  # started by hand, perhaps elsewhere: `slackwater worker NAME`


class FleetFile(_Section):
    """The whole file."""

    name: str | None = None
    policy: str = "klink"
    parameters: dict[str, Any] = {}  # of the policy
    slots: int | None = Field(None, ge=1)
    runs_at_once: int | None = Field(None, ge=1)  # of tables; default: half of the slots
    max_wait: Seconds | None = None
    gate: Literal["auto", "clock", "source", "none"] = "auto"
    controller: Literal["process", "thread"] = "process"
    one_batch: Literal["auto", "off"] = "auto"
    checkpoints: str = "checkpoints"
    spark: SparkSection = SparkSection()
    quality: QualitySection = QualitySection()
    forwarding: bool = True  # whether queries of `slackwater fleet` tell each other of progress
    listen: str | None = None  # of `slackwater fleet`: host:port; default: a Unix socket
    workers: dict[str, WorkerSection] = {}
    queries: dict[str, QuerySection] = {}


def find(path: Path | None, start: Path) -> Path:
    """Find the file that was named (or its folder), or ``fleet.toml`` in ``start`` or above."""
    if path is not None:
        named = path / FILE_NAME if path.is_dir() else path
        if not named.is_file():
            raise UsageError(f"{named}: no such file; name a fleet file, such as {FILE_NAME}")
        return named.resolve()
    for folder in (start, *start.resolve().parents):
        if (folder / FILE_NAME).is_file():
            return (folder / FILE_NAME).resolve()
    raise UsageError(f"no {FILE_NAME} here or in a folder above; `slackwater init` writes one")


def load(path: Path) -> FleetFile:
    """Read and check; what is wrong is told in one line."""
    fleet = load_toml(path, FleetFile)
    if not fleet.queries:
        raise UsageError(f"{path}: no queries; add a section [queries.NAME]")
    _refuse_circles(path, fleet)
    return fleet


def _refuse_circles(path: Path, fleet: FleetFile) -> None:
    reads: dict[str, set[str]] = {}
    for name, query in fleet.queries.items():
        reads.setdefault(query.task or name, set()).update(query.reads)
    try:
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        raise UsageError(f"{path}: queries read each other: {', '.join(error.args[1])}") from None
