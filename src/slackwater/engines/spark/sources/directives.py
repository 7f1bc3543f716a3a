"""What a source of ours is told and what it tells back: one small file each way.

The *directives* of a source are read by its process before each micro-batch. Their parts have
different writers (a grant limits rows, the quality controller sheds, a planner samples), which is
why a part is changed under a lock that holds between processes: a source gate's grants arrive in a
process of their own. A missing or broken file tells nothing: rows are unlimited and exact.

The *reply* lies beside it. It says how many rows have arrived, also while a long micro-batch runs:
Spark's progress says so only when that has ended.
"""

import fcntl
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from slackwater.common.files import replace_text
from slackwater.core.errors import UsageError
from slackwater.engines.spark.progress import Arrived
from slackwater.ipc.unix_socket import runtime_dir
from slackwater.quality.rates import NO_SHEDDING, ShedPlan
from slackwater.sampling.plan import Plan

SHED_LASTS_S = 30.0  # without a word from whoever sheds, a source goes back to everything
REPLY_EVERY_S = 0.5
REPLIES_KEPT = 20  # counts in the file, for a reader that comes less often

T = TypeVar("T")
CountArrived = Callable[
    [], dict[str, Any] | None
]  # an offset: rows "n" at a time "t", microseconds


class Shed(msgspec.Struct, frozen=True):
    """How much is kept, and until when that is to be followed."""

    plan: ShedPlan
    until: float


class InForce(NamedTuple):
    """What holds for one micro-batch."""

    rows: int | None  # at most; None: no limit
    shedding: ShedPlan
    sampling: Plan | None
    reach_us: int = 0  # it reads what has arrived by then, even if the clock has gone back since


class Directives(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one source is told; times are seconds since the epoch.

    >>> Directives(rows=7).at(5.0).rows, Directives(rows=7, shared=True).at(5.0).rows
    (7, None)
    >>> Directives(rows=0).at(5.0).rows, Directives(rows=0, until=6.0).at(5.0).rows
    (None, 0)
    """

    rows: Annotated[int, msgspec.Meta(ge=0)] | None = None  # most rows of a micro-batch
    until: float | None = None  # a limit of 0 holds only until then: it must not hold for ever
    shed: Shed | None = None
    sample: Plan | None = None
    reach_us: int = 0  # microseconds: a watermark was raised to what has arrived by then
    shared: bool = False  # two queries read the source: nobody may limit its rows

    def at(self, now_s: float) -> InForce:
        """Return what is still to be followed."""
        over = self.rows == 0 and (self.until is None or now_s >= self.until)
        shed = self.shed if self.shed is not None and now_s < self.shed.until else None
        return InForce(
            rows=None if self.shared or over else self.rows,
            shedding=NO_SHEDDING if shed is None else shed.plan,
            sampling=None if self.sample is None else self.sample.at(now_s),
            reach_us=self.reach_us,
        )


NOTHING = Directives()


class Reply(msgspec.Struct, frozen=True):
    """What one source tells."""

    arrived: tuple[tuple[int, int], ...] = ()  # microseconds, rows by then; oldest first


def read_directives(path: str | Path | None) -> Directives:
    """Return what a file tells a source; nothing where it is missing or broken."""
    return NOTHING if path is None else _read(Path(path), NOTHING)


@dataclass(frozen=True, order=True)
class DirectivesFile:
    """The directives of one source, as those who tell it something see them."""

    path: Path

    @property
    def reply_path(self) -> Path:
        return self.path.with_suffix(".reply")

    def read(self) -> Directives:
        """Return what the source is told now."""
        return read_directives(self.path)

    def update(self, **parts: Any) -> None:
        """Set some parts and leave the others; they hold from the next micro-batch on."""
        with self._locked():
            self._write(msgspec.structs.replace(self.read(), **parts))

    def reach(self, until_us: int) -> None:
        """Have the next micro-batch read what has arrived by then; it is never taken back."""
        with self._locked():
            told = self.read()
            self._write(msgspec.structs.replace(told, reach_us=max(told.reach_us, until_us)))

    def shed(self, plan: ShedPlan, lasts_s: float = SHED_LASTS_S) -> None:
        """Say how much is to be kept; to be said again and again."""
        self.update(shed=Shed(plan, time.time() + lasts_s))

    def sample(self, plan: Plan | None) -> None:
        """Say how rows are to be sampled; None: not at all."""
        self.update(sample=plan)

    def arrived(self) -> tuple[tuple[int, int], ...]:
        """Return times and rows arrived by then, as the source has told them lately."""
        return _read(self.reply_path, Reply()).arrived

    def end_shedding(self) -> None:
        """Take the plan away, and what the source replied to it."""
        self.update(shed=None)
        self.reply_path.unlink(missing_ok=True)

    def _write(self, told: Directives) -> None:
        if told == NOTHING:
            self.path.unlink(missing_ok=True)
        else:
            replace_text(self.path, _text(told))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder: the file itself is replaced, so that a lock on it would be lost."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)  # and with it the lock


def new_directives_path() -> str:
    """Return where the directives of a new source will be."""
    return str(runtime_dir().absolute() / "directives" / f"{uuid.uuid4().hex}.json")


def reply_arrivals(path: str, count: CountArrived) -> None:
    """Tell what has arrived from now on until the process ends, as long as somebody sheds.

    Parameters
    ----------
    path
        Of the source's directives.
    count
        Says what has arrived. It is called in a thread of its own.
    """
    file = DirectivesFile(Path(path))
    threading.Thread(
        target=_keep_replying, args=(file, count), name="slackwater-arrivals", daemon=True
    ).start()


def _keep_replying(file: DirectivesFile, count: CountArrived) -> None:
    seen: deque[tuple[int, int]] = deque(maxlen=REPLIES_KEPT)
    while True:
        if file.read().shed is not None:
            try:
                found = count()
                if found is not None:
                    seen.append((int(found["t"]), int(found["n"])))
                    replace_text(file.reply_path, _text(Reply(tuple(seen))))
            except Exception:  # then progress tells it once a batch, as for any other source
                return
        time.sleep(REPLY_EVERY_S)


def arrived_at(files: Sequence[DirectivesFile]) -> list[Arrived]:
    """Return what has arrived at all sources of a query together, oldest first.

    Nothing while one of them is silent.
    """
    series = [file.arrived() for file in files]
    length = min(map(len, series), default=0)
    newest = (each[len(each) - length :] for each in series)
    return [
        Arrived(
            rows=float(sum(rows for _, rows in counts)),
            at_s=sum(at_us for at_us, _ in counts) / len(counts) / 1e6,
        )
        for counts in zip(*newest, strict=True)
    ]


def _read(path: Path, otherwise: T) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=type(otherwise))
    except (OSError, ValueError, UsageError):
        return otherwise


def _text(value: msgspec.Struct) -> str:
    """Write JSON; numbers of NumPy, which estimates are made of, as plain ones."""
    return msgspec.json.encode(value, enc_hook=lambda number: number.item()).decode()
