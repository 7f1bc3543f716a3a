"""A fleet over streams that were written down before, in a process that can be killed at any phase.

``python -m tests.engines.spark.gates.scripted_fleet FOLDER`` reads ``FOLDER/script.json``. Rows
become visible a few at a time; how many are is kept in files, so that a process that is started
again goes on. Every batch of every query leaves ``FOLDER/out/QUERY/BATCH.json``: the windows that
it emitted, with the numbers of their rows. Asked to die at a phase, it kills itself with its JVM.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from slackwater.common.files import replace_text
from slackwater.engines.spark.session.session import session
from slackwater.spark import Fleet

PHASES = ("offsets", "plan", "read", "write", "written")


@dataclass(frozen=True)
class Stream:
    """One query's input, in the order of arrival; the number of a row is its place."""

    name: str
    events_ms: list[int]
    window_ms: int
    delay_ms: int

    def windows(self) -> dict[int, list[int]]:
        """All rows by the end of their window."""
        found: dict[int, list[int]] = {}
        for number, event_ms in enumerate(self.events_ms):
            found.setdefault(self._end_ms(event_ms), []).append(number)
        return found

    def must_count(self) -> set[int]:
        """Rows that are within the delay of all that came before them: never to be dropped."""
        newest_ms, kept = -(10**15), set()
        for number, event_ms in enumerate(self.events_ms):
            if self._end_ms(event_ms) > newest_ms - self.delay_ms:
                kept.add(number)
            newest_ms = max(newest_ms, event_ms)
        return kept

    def _end_ms(self, event_ms: int) -> int:
        return (event_ms // self.window_ms + 1) * self.window_ms


@dataclass(frozen=True)
class Script:
    """What a process has to do."""

    streams: list[Stream]
    seed: int
    one_batch: str = "auto"
    die_at: str = ""  # a phase
    die_after: int = 0  # times that the phase was reached, over all queries

    @classmethod
    def read(cls, folder: Path) -> "Script":
        raw = json.loads((folder / "script.json").read_text())
        return cls(**raw | {"streams": [Stream(**each) for each in raw["streams"]]})

    def write(self, folder: Path) -> None:
        replace_text(folder / "script.json", json.dumps(asdict(self)))


def visible(folder: Path, name: str) -> int:
    try:
        return int((folder / f"{name}.visible").read_text())
    except FileNotFoundError:
        return 0


def perhaps_die(folder: Path, phase: str) -> None:
    """Kill the whole fleet if it is time: driver, JVM, Python processes."""
    script = Script.read(folder)
    if phase != script.die_at:
        return
    with (folder / "reached").open("a") as file:
        file.write(".")
    if (folder / "reached").stat().st_size > script.die_after:
        os.killpg(int((folder / "group").read_text()), signal.SIGKILL)


class ScriptedSource(DataSource):
    """Rows of a stream, as far as they are visible."""

    @classmethod
    def name(cls) -> str:
        return "scripted"

    def schema(self) -> str:
        return "event_time timestamp, id int"

    def streamReader(self, schema: StructType) -> "ScriptedReader":
        return ScriptedReader(Path(self.options["folder"]), self.options["stream"])


@dataclass(frozen=True)
class Rows(InputPartition):
    first: int
    last: int


class ScriptedReader(DataSourceStreamReader):
    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name

    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        perhaps_die(self._folder, "offsets")
        return {"n": visible(self._folder, self._name)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Rows]:
        perhaps_die(self._folder, "plan")
        return [Rows(start["n"], end["n"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        perhaps_die(self._folder, "read")
        script = Script.read(self._folder)
        events_ms = next(s.events_ms for s in script.streams if s.name == self._name)
        numbers = range(partition.first, partition.last)
        times = pa.array([events_ms[n] * 1000 for n in numbers], pa.timestamp("us", tz="UTC"))
        yield pa.RecordBatch.from_arrays(
            [times, pa.array(list(numbers), pa.int32())], names=["event_time", "id"]
        )


def write(folder: Path, name: str, batch: DataFrame, number: int) -> None:
    """One file a batch, replaced if the batch is repeated."""
    rows = [(int(row.end), sorted(row.ids)) for row in batch.collect()]
    perhaps_die(folder, "write")
    replace_text(folder / "out" / name / f"{number}.json", json.dumps(rows))
    perhaps_die(folder, "written")


def start(fleet: Fleet, folder: Path, stream: Stream) -> None:
    reader = fleet.spark.readStream.format("scripted")
    rows = reader.options(folder=str(folder), stream=stream.name).load()
    marked = rows.withWatermark("event_time", f"{stream.delay_ms} milliseconds")
    window = F.window("event_time", f"{stream.window_ms} milliseconds")
    counted = marked.groupBy(window).agg(F.collect_list("id").alias("ids"))
    results = counted.select(F.unix_millis("window.end").alias("end"), "ids")
    (folder / "out" / stream.name).mkdir(parents=True, exist_ok=True)

    def newest(_: str) -> float | None:
        seen = stream.events_ms[: visible(folder, stream.name)]
        return max(seen) / 1000 if seen else None

    fleet.start(
        results.writeStream.outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoints" / stream.name))
        .foreachBatch(lambda batch, number: write(folder, stream.name, batch, number)),
        name=stream.name,
        frontier=newest,
    )


def main(folder: Path) -> None:
    os.setpgid(0, 0)
    (folder / "group").write_text(str(os.getpgid(0)))
    script = Script.read(folder)
    draw = random.Random(f"{script.seed} {os.getpid()}")
    spark = session("scripted", "local[2]", conf={"spark.sql.shuffle.partitions": "1"})
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(ScriptedSource)
    with Fleet(spark, "fcfs", one_batch=script.one_batch) as fleet:
        for stream in script.streams:
            start(fleet, folder, stream)
        while any(visible(folder, s.name) < len(s.events_ms) for s in script.streams):
            for stream in script.streams:
                more = visible(folder, stream.name) + draw.choice((0, 1, 2, 5, 20))
                replace_text(
                    folder / f"{stream.name}.visible", str(min(more, len(stream.events_ms)))
                )
            time.sleep(draw.uniform(0, 0.3))
        for query in fleet.queries.values():
            query.processAllAvailable()
        (folder / "status.json").write_text(
            json.dumps({row.name: row.why_two_batches for row in fleet.status().queries})
        )
    (folder / "done").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
