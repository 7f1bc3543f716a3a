"""RIoTBench's ETL: parse, drop what is out of range or unknown, fill gaps, annotate."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from slackwater_bench.workloads.riot_sensors import (
    FACTOR,
    HIGHEST,
    MISSING_EVERY,
    MODULUS,
    NOMINAL_LOW,
    SENSORS,
    UNKNOWN,
    Readings,
    nominal,
    registered,
)


@dataclass(frozen=True)
class Step:
    """One operator in SQL: columns, and which rows pass."""

    name: str
    columns: str
    where: str = "TRUE"


@dataclass(frozen=True, kw_only=True)
class RiotEtl:
    """One query; its input is numbers, of which the first operator makes messages of sensors.

    Gaps are filled with the sensor's nominal value. RIoTBench takes a mean of the last values,
    which depends on the order of arrival and so has no truth to compare with.

    References
    ----------
    Shukla, Chaturvedi and Simmhan, *RIoTBench*, Concurrency and Computation 29(21), 2017.
    """

    number: int = 0
    seed: int = 1

    @property
    def name(self) -> str:
        return f"etl-{self.number}"

    def steps(self, json_text: str, json_value: str) -> list[Step]:
        """Return its operators; engines differ only in how they make and read JSON.

        Parameters
        ----------
        json_text
            Makes a text of a text: ``CAST({} AS VARCHAR)``, say.
        json_value
            Reads a field: ``JSON_VALUE(message, '$.{}')``, say.
        """
        mixed = f"((id * {FACTOR} + {self.seed * 101}) % {MODULUS})"
        message = (
            "CONCAT('{\"s\":', "
            + json_text.format(f"id % {SENSORS}")
            + ", ',\"v\":', CASE WHEN "
            + f"{mixed} % {MISSING_EVERY} = 0 THEN 'null' ELSE "
            + json_text.format(f"{mixed} / 100.0")
            + " END, '}')"
        )
        sensor = f"CAST({json_value.format('s')} AS BIGINT)"
        value = f"CAST({json_value.format('v')} AS DOUBLE)"
        return [
            Step("receive", f"id, {message} AS message"),
            Step("parse", f"id, {sensor} AS sensor, {value} AS v"),
            Step("range", "id, sensor, v", f"v IS NULL OR v <= {HIGHEST}"),
            Step("known", "id, sensor, v", f"(sensor * 31) % 10 <> {UNKNOWN}"),
            Step("fill", f"id, sensor, COALESCE(v, {NOMINAL_LOW} + sensor / 4.0e0) AS v"),
            Step(
                "annotate",
                "id, sensor, v, CONCAT('zone-', " + json_text.format("sensor % 7") + ") AS zone",
            ),
        ]

    def truth(self, numbers: NDArray[np.int64]) -> list[tuple[int, int, float, str]]:
        """Return rows that come out of these inputs: number, sensor, value to four places, zone.

        >>> RiotEtl().truth(np.arange(2))
        [(0, 0, 1.01, 'zone-0'), (1, 1, 80.2, 'zone-1')]
        """
        found = Readings.of(numbers, self.seed)
        passes = (found.missing | (found.value <= HIGHEST)) & registered(found.sensor)
        filled = np.where(found.missing, nominal(found.sensor), found.value)
        return [
            (int(n), int(s), round(float(v), 4), f"zone-{s % 7}")
            for n, s, v in zip(
                found.number[passes], found.sensor[passes], filled[passes], strict=True
            )
        ]

    def pipeline(self, rows: DataFrame) -> DataFrame:
        """Return the query on Spark, on rows with a column ``id``."""
        for step in self.steps("CAST({} AS STRING)", "get_json_object(message, '$.{}')"):
            rows = rows.where(step.where).selectExpr(*_split(step.columns))
        return rows


def _split(columns: str) -> list[str]:
    """Split columns at commas that are not inside brackets or quotes.

    >>> _split("id, CONCAT('a,b', c) AS d")
    ['id', "CONCAT('a,b', c) AS d"]
    """
    parts, depth, quoted, begin = [], 0, False, 0
    for place, character in enumerate(columns):
        if character == "'":
            quoted = not quoted
        elif not quoted:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if character == "," and depth == 0:
                parts.append(columns[begin:place].strip())
                begin = place + 1
    return [*parts, columns[begin:].strip()]
