"""Options of a feed, as texts that Spark carries from the driver to its Python processes."""

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.common.plugins import split_names
from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.payload import PayloadGenerator, load_generator
from slackwater.engines.spark.sources.sampled_rows import SAMPLE, SAMPLE_TYPE
from slackwater.engines.spark.sources.shed_rows import ANY_ROW, Shedding
from slackwater.traffic import Traffic, parse_rate


@dataclass(frozen=True, kw_only=True)
class FeedOptions:
    """Everything that a feed's processes need to know; equal options give equal rows."""

    traffic: Traffic
    generator: str  # module:Class
    arguments: str = "{}"  # of the generator, a JSON object
    rows_per_batch: int | None = None  # static limit; None: none
    knob: str | None = None  # file with a limit that changes while the query runs
    arrival: bool = False  # whether rows carry ``arrival_time``
    plan: str | None = None  # file with a sampling plan; then rows carry ``sample``
    shed: str | None = None  # file that says how much is kept; None: everything, always
    shedding: Shedding = ANY_ROW  # which rows go together, and which last

    def __post_init__(self) -> None:
        if self.shed is not None and self.plan is not None:
            raise UsageError("a feed is either sampled or sheddable, not both")
        if self.rows_per_batch is not None and self.rows_per_batch < 1:
            raise UsageError(f"rows_per_batch must be at least 1, not {self.rows_per_batch}")

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> "FeedOptions":
        """Options as Spark hands them over."""
        for name in ("generator", "start"):
            if name not in texts:
                raise UsageError(f"a feed needs the option '{name}'")
        try:
            return cls._convert(texts)
        except ValueError as error:
            raise UsageError(f"an option of the feed is not a number: {error}") from None

    @classmethod
    def _convert(cls, texts: Mapping[str, str]) -> "FeedOptions":
        stop, rows = texts.get("stop"), texts.get("rows_per_batch")
        traffic = Traffic(
            start_s=float(texts["start"]),
            stop_s=None if stop is None else float(stop),
            rate=texts.get("rate", Traffic.rate),
            delays=texts.get("delays", Traffic.delays),
            partitions=int(texts.get("partitions", Traffic.partitions)),
            seed=int(texts.get("seed", Traffic.seed)),
            gaps=texts.get("gaps", Traffic.gaps),
        )
        return cls(
            traffic=traffic,
            generator=texts["generator"],
            arguments=texts.get("args", "{}"),
            rows_per_batch=None if rows is None else int(rows),
            knob=texts.get("knob"),
            arrival=texts.get("arrival", "false").lower() == "true",
            plan=texts.get("plan"),
            shed=texts.get("shed"),
            shedding=Shedding(split_names(texts.get("shed_by", "")), texts.get("spare")),
        )

    def texts(self) -> dict[str, str]:
        """Options as Spark takes them; a trace file is written out, workers need not see it."""
        traffic = self.traffic
        values = {
            "generator": self.generator,
            "args": self.arguments,
            "start": repr(traffic.start_s),
            "stop": None if traffic.stop_s is None else repr(traffic.stop_s),
            "rate": parse_rate(traffic.rate).text(),
            "delays": traffic.delays,
            "partitions": str(traffic.partitions),
            "seed": str(traffic.seed),
            "gaps": traffic.gaps,
            "rows_per_batch": None if self.rows_per_batch is None else str(self.rows_per_batch),
            "knob": self.knob,
            "arrival": str(self.arrival).lower(),
            "plan": self.plan,
            "shed": self.shed,
            **self.shedding.texts(),
        }
        return {name: value for name, value in values.items() if value is not None}

    def payload(self) -> PayloadGenerator:
        """The generator of the rows."""
        return load_generator(self.generator, self.arguments, self.traffic.seed)

    def schema(self) -> str:
        """Columns of the feed as Spark DDL."""
        payload = self.payload()
        columns = [payload.schema, f"{payload.event_time} timestamp"]
        if self.arrival:
            columns.append("arrival_time timestamp")
        if self.plan is not None:
            columns.append(f"{SAMPLE} {SAMPLE_TYPE}")
        return ", ".join(columns)
