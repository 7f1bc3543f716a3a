"""A fleet over streams that were written down before, in a process that can be killed at any phase.

``python -m tests.engines.spark.gates.scripted_fleet FOLDER`` reads ``FOLDER/script.json``. Rows
become visible a few at a time, in a source of the test's own with a frontier that it tells, or in
one that tells its own; how many are is kept, so that a process that is started again goes
on. Every batch of every query leaves ``FOLDER/out/QUERY/BATCH.json``: the windows that
it emitted, with the numbers of their rows. Asked to die at a phase, it kills itself with its JVM.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import redis
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import DataType, StructType

from slackwater.common.files import replace_text
from slackwater.engines.spark.session.session import session
from slackwater.engines.spark.sources import remote_frontier
from slackwater.engines.spark.sources.log.segment_log import append, ends
from slackwater.spark import Fleet, kafka_frontier, read_log, redis_stream
from slackwater_bench.kafka_broker import connector_jars
from tests.waiting import eventually

SCHEMA = "event_time timestamp, id int"
LAST = 5  # rows that come one by one, so that each has a batch of its own
PHASES = ("offsets", "plan", "read", "write", "written")


@dataclass(frozen=True)
class Stream:
    """One query's input, in the order of arrival; the number of a row is its place."""

    name: str
    events_ms: list[int]
    window_ms: int
    delay_ms: int
    source: str = (
        "scripted"  # or "log", "files", "kafka ADDRESS", "payload ADDRESS", an address of Redis
    )

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


def rows_of(stream: Stream, numbers: range) -> pa.RecordBatch:
    times = [stream.events_ms[n] * 1000 for n in numbers]
    return pa.RecordBatch.from_arrays(
        [pa.array(times, pa.timestamp("us", tz="UTC")), pa.array(list(numbers), pa.int32())],
        names=["event_time", "id"],
    )


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
        return SCHEMA

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
        streams = Script.read(self._folder).streams
        stream = next(each for each in streams if each.name == self._name)
        yield rows_of(stream, range(partition.first, partition.last))


class ScriptedInput:
    """The source of the test's own: how many rows are visible is in a file."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        self._folder, self._stream = folder, stream

    def visible(self) -> int:
        return visible(self._folder, self._stream.name)

    def show(self, until: int) -> None:
        replace_text(self._folder / f"{self._stream.name}.visible", str(until))

    def load(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("scripted")
        return reader.options(folder=str(self._folder), stream=self._stream.name).load()

    def newest(self, _: str) -> float | None:
        seen = self._stream.events_ms[: self.visible()]
        return max(seen) / 1000 if seen else None

    @property
    def told(self) -> Callable[[str], float | None] | None:
        return self.newest


class LogInput(ScriptedInput):
    """A log of a query."""

    told = None

    @property
    def _log(self) -> Path:
        return self._folder / "logs" / self._stream.name

    def visible(self) -> int:
        written = ends(self._log) if self._log.exists() else None
        return 0 if written is None else written[1].last

    def show(self, until: int) -> None:
        numbers = range(self.visible(), until)
        append(self._log, until, pa.Table.from_batches([rows_of(self._stream, numbers)]))

    def load(self, spark: SparkSession) -> DataFrame:
        self._log.mkdir(parents=True, exist_ok=True)
        replace_text(self._log / "schema.json", DataType.fromDDL(SCHEMA).json())
        return read_log(spark, self._log)


class FileInput(ScriptedInput):
    """A folder of parquet files, each named by the number of its last row and one."""

    told = None

    @property
    def _files(self) -> Path:
        return self._folder / "files" / self._stream.name

    def visible(self) -> int:
        return max((int(path.stem) for path in self._files.glob("[0-9]*.parquet")), default=0)

    def show(self, until: int) -> None:
        if until == self.visible():
            return
        rows = rows_of(self._stream, range(self.visible(), until))
        hidden = self._files / f".{until}"
        pq.write_table(pa.Table.from_batches([rows]), hidden)
        hidden.rename(self._files / f"{until}.parquet")

    def load(self, spark: SparkSession) -> DataFrame:
        self._files.mkdir(parents=True, exist_ok=True)
        return spark.readStream.schema(SCHEMA).parquet(str(self._files))


class RedisInput(ScriptedInput):
    """A stream of Redis."""

    told = None

    def __init__(self, url: str, stream: Stream) -> None:
        self._url, self._stream = url, stream
        self._client = redis.Redis.from_url(url)

    def visible(self) -> int:
        return int(self._client.xlen(self._stream.name))

    def show(self, until: int) -> None:
        for number in range(self.visible(), until):
            row: dict[Any, Any] = {"id": number, "event_time": self._stream.events_ms[number]}
            self._client.xadd(self._stream.name, row, id=f"{number + 1}-0")

    def load(self, spark: SparkSession) -> DataFrame:
        name = self._stream.name
        return redis_stream(spark, self._url, name, schema=SCHEMA, timestamps="ms")


class KafkaInput(ScriptedInput):
    """A topic, read with Spark's connector; times are the records' own, or in their payloads."""

    def __init__(self, address: str, stream: Stream, in_payload: bool) -> None:
        self._stream = stream
        self._settings: dict[str, Any] = {"bootstrap.servers": address, "log_level": 2}
        self._producer = Producer(self._settings | {"enable.idempotence": True})
        self._consumer = Consumer(self._settings | {"group.id": "test"})
        self._in_payload = in_payload

    def visible(self) -> int:
        place = TopicPartition(self._stream.name, 0)
        ends = self._consumer.get_watermark_offsets(place, timeout=30)
        assert ends is not None
        return ends[1]

    def show(self, until: int) -> None:
        for number in range(self.visible(), until):
            at_ms = self._stream.events_ms[number]
            value = json.dumps({"id": number, "at": at_ms}).encode()
            more = {} if self._in_payload else {"timestamp": at_ms}
            self._producer.produce(self._stream.name, value, partition=0, **more)
        assert self._producer.flush(30) == 0

    def load(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("kafka").option("startingOffsets", "earliest")
        reader = reader.option("kafka.bootstrap.servers", self._settings["bootstrap.servers"])
        rows = reader.option("subscribe", self._stream.name).load()
        field = "get_json_object(cast(value as string), '$.{}')"
        at = "timestamp"
        if self._in_payload:
            at = f"timestamp_millis(cast({field.format('at')} as bigint))"
        return rows.selectExpr(f"{at} as event_time", f"cast({field.format('id')} as int) as id")

    @property
    def told(self) -> Any:
        in_payload = kafka_frontier(lambda record: json.loads(record.value or b"")["at"] / 1000)
        return in_payload if self._in_payload else None


def input_of(folder: Path, stream: Stream) -> ScriptedInput:
    kind, _, address = stream.source.partition(" ")
    if kind in ("kafka", "payload"):
        return KafkaInput(address, stream, in_payload=kind == "payload")
    here = {"log": LogInput, "files": FileInput, "scripted": ScriptedInput}
    if kind in here:
        return here[kind](folder, stream)
    return RedisInput(kind, stream)


def write(folder: Path, name: str, batch: DataFrame, number: int) -> None:
    """One file a batch, replaced if the batch is repeated."""
    rows = [(int(row.end), sorted(row.ids)) for row in batch.collect()]
    perhaps_die(folder, "write")
    replace_text(folder / "out" / name / f"{number}.json", json.dumps(rows))
    perhaps_die(folder, "written")


def start(fleet: Fleet, folder: Path, stream: Stream, rows: ScriptedInput) -> None:
    marked = rows.load(fleet.spark).withWatermark("event_time", f"{stream.delay_ms} milliseconds")
    window = F.window("event_time", f"{stream.window_ms} milliseconds")
    counted = marked.groupBy(window).agg(F.collect_list("id").alias("ids"))
    results = counted.select(F.unix_millis("window.end").alias("end"), "ids")
    (folder / "out" / stream.name).mkdir(parents=True, exist_ok=True)
    fleet.start(
        results.writeStream.outputMode("append")
        .option("checkpointLocation", str(folder / "checkpoints" / stream.name))
        .foreachBatch(lambda batch, number: write(folder, stream.name, batch, number)),
        name=stream.name,
        frontier=rows.told,
    )


def has_read_all(fleet: Fleet, name: str) -> bool:
    """Wait for a query; the fleet starts it again if a busy machine cost it a Python process."""
    try:
        fleet.queries[name].processAllAvailable()
    except StreamingQueryException:
        return False
    return True


def raised(query: StreamingQuery, delay_ms: int) -> int:
    """Count batches that ran with a watermark which what was read before them does not give."""
    found, known_ms = 0, None
    every = [progress.eventTime for progress in query.recentProgress]
    for event_times in filter(None, every):
        watermark_ms = _ms(event_times["watermark"])
        if known_ms is not None and watermark_ms > known_ms:
            found += 1
        read_ms = _ms(event_times["max"]) - delay_ms if "max" in event_times else 0
        known_ms = max(known_ms or 0, watermark_ms, read_ms)
    return found


def _ms(text: str) -> int:
    return round(1000 * datetime.fromisoformat(text).timestamp())


def main(folder: Path) -> None:
    os.setpgid(0, 0)
    (folder / "group").write_text(str(os.getpgid(0)))
    script = Script.read(folder)
    draw = random.Random(f"{script.seed} {os.getpid()}")
    conf = {"spark.sql.shuffle.partitions": "1"}
    if any(stream.source.startswith(("kafka ", "payload ")) for stream in script.streams):
        conf["spark.jars"] = ",".join(connector_jars())
    remote_frontier.ANSWER_S = 10.0  # the machine may be busy
    spark = session("scripted", "local[2]", conf=conf)
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(ScriptedSource)
    with Fleet(spark, "fcfs", one_batch=script.one_batch) as fleet:
        inputs = [(stream, input_of(folder, stream)) for stream in script.streams]
        for stream, rows in inputs:
            start(fleet, folder, stream, rows)
        while any(rows.visible() < len(stream.events_ms) - LAST for stream, rows in inputs):
            for stream, rows in inputs:
                more = rows.visible() + draw.choice((0, 1, 2, 5, 20))
                rows.show(max(rows.visible(), min(more, len(stream.events_ms) - LAST)))
            time.sleep(draw.uniform(0, 0.3))
        for left in range(LAST, -1, -1):
            for stream, rows in inputs:
                rows.show(max(rows.visible(), len(stream.events_ms) - left))
            for stream in script.streams:
                eventually(partial(has_read_all, fleet, stream.name), 120)
        (folder / "status.json").write_text(
            json.dumps({row.name: row.why_two_batches for row in fleet.status().queries})
        )
        counts = {s.name: raised(fleet.queries[s.name], s.delay_ms) for s in script.streams}
        (folder / "raised.json").write_text(json.dumps(counts))
    (folder / "done").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
