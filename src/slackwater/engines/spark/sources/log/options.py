"""Options of a source over a log, as texts that Spark carries to its Python processes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args, get_origin

from slackwater.common.plugins import hint, split_names
from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.shed_rows import Shedding

Start = Literal["earliest", "latest"]
Timestamps = Literal["iso", "s", "ms", "us"]
Malformed = Literal["fail", "null"]


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """What all logs have in common."""

    start: Start = "earliest"  # where a query without a checkpoint begins
    rows_per_batch: int | None = None  # static limit; None: none
    knob: str | None = None  # file with a limit that changes while the query runs
    event_time: str | None = None  # column with the event time
    plan: str | None = None  # file that says how rows are sampled; None: they are not
    shed: str | None = None  # file that says how much is kept; None: everything, always
    shed_by: tuple[str, ...] = ()  # columns: rows with the same values go together
    spare: str | None = None  # column, comparison, value: such rows are dropped last
    timestamps: Timestamps = "iso"  # how timestamps are written: as text, or in units since 1970
    malformed: Malformed = "fail"  # what a value that does not fit its column's type becomes
    retry_s: float = 60.0  # how long a server may be away
    fail_on_data_loss: bool = True

    def __post_init__(self) -> None:
        for name, kind in (("start", Start), ("timestamps", Timestamps), ("malformed", Malformed)):
            if getattr(self, name) not in get_args(kind):
                known = ", ".join(get_args(kind))
                raise UsageError(f"{name} is {getattr(self, name)!r}; it may be one of {known}")
        if self.rows_per_batch is not None and self.rows_per_batch < 1:
            raise UsageError(f"rows_per_batch must be at least 1, not {self.rows_per_batch}")
        if self.retry_s < 0:
            raise UsageError(f"retry_s must not be negative, it is {self.retry_s}")
        if self.plan is not None and self.event_time is None:
            raise UsageError("a sampled source must know the event time: name its column")

        if self.plan is not None and self.shed is not None:
            raise UsageError("a source is either sampled or sheddable, not both")

    @property
    def shedding(self) -> Shedding:
        """Which rows are dropped together, and which last."""
        return Shedding(self.shed_by, self.spare)

    @property
    def server(self) -> str:
        """Its name in messages."""
        raise NotImplementedError

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> Self:
        """Options as Spark hands them over."""
        known = {field.name: _parser(field.type) for field in fields(cls)}
        values: dict[str, Any] = {}
        for name, text in texts.items():
            if name not in known:
                raise UsageError(f"the source has no option {name!r}; {hint(name, known)}")
            try:
                values[name] = known[name](text)
            except ValueError as error:
                raise UsageError(f"the option {name} is wrong: {error}") from None
        try:
            return cls(**values)
        except TypeError as error:
            raise UsageError(f"an option is missing: {error}") from None

    def texts(self) -> dict[str, str]:
        """Options as Spark takes them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _text(value) for name, value in values.items() if value is not None}


def check_names(names: tuple[str, ...], what: str) -> None:
    """Refuse what would not survive being written as a text."""
    if not names:
        raise UsageError(f"name at least one {what}")
    if len(set(names)) < len(names):
        raise UsageError(f"a {what} is named twice: {', '.join(names)}")
    for name in names:
        if not name or "," in name or name != name.strip():
            raise UsageError(f"{name!r} cannot be read: a {what}'s name is without commas")


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parser(kind: Any) -> Callable[[str], Any]:
    return str if get_origin(kind) is Literal else _PARSERS[kind]


_PARSERS: dict[Any, Callable[[str], Any]] = {
    str: str,
    str | None: str,
    int | None: int,
    float: float,
    bool: _truth,
    tuple[str, ...]: split_names,
}
