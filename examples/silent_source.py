"""A source that falls silent: when its last window closes, with ``idle_after`` and without.

``python examples/silent_source.py [--rounds 3] [--idle-after 3]``
"""

import argparse
import json
import tempfile
from datetime import UTC, datetime
from functools import partial
from operator import contains
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.core.clock import Deadline, RealClock, sleep_until
from slackwater.spark import Fleet, session

WINDOW_S, DELAY_S = 2.0, 1.0
TALKS_S = 5.0  # before it falls silent
CLOCK = RealClock()

Results = dict[float, float]  # when a window's result was there, by its end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--idle-after", type=float, default=3.0)
    options = parser.parse_args()
    spark = session("slackwater-silence", conf={"spark.sql.shuffle.partitions": "2"})
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder, Fleet(spark, "klink") as fleet:
        results: dict[str, Results] = {"closes": {}, "stays_open": {}}
        for name, idle_after in (("closes", options.idle_after), ("stays_open", None)):
            rows = spark.readStream.schema("at timestamp").json(str(inbox(folder, name)))
            rows = rows.withWatermark("at", f"{DELAY_S:g} seconds")
            counts = rows.groupBy(F.window("at", f"{WINDOW_S:g} seconds")).count()
            writer = counts.writeStream.foreachBatch(partial(take, results[name]))
            fleet.start(writer, name=name, idle_after=idle_after)
        for _ in range(options.rounds):
            last_s = talk([inbox(folder, "closes"), inbox(folder, "stays_open")])
            end_s = last_s - last_s % WINDOW_S + WINDOW_S
            limit = Deadline(30 + options.idle_after)
            limit.wait_for(partial(contains, results["closes"], end_s), 0.02)
            took_s = results["closes"][end_s] - end_s
            batch_s = next(q.batch_s or 0.0 for q in fleet.status().queries if q.name == "closes")
            print(
                f"closed {took_s:.2f} s after its end: idle_after {options.idle_after:g} + delay "
                f"{DELAY_S:g} + {took_s - options.idle_after - DELAY_S:.2f} s; "
                f"its batches take {batch_s:.2f} s. Without the option: "
                + ("closed, too" if end_s in results["stays_open"] else "open")
            )
    spark.stop()


def take(results: Results, batch: DataFrame, _: int) -> None:
    """Note when each window's result was there."""
    ends = [row[0].timestamp() for row in batch.select("window.end").collect()]
    results.update((end_s, CLOCK.now()) for end_s in ends)


def inbox(folder: str, name: str) -> Path:
    found = Path(folder) / name
    found.mkdir(exist_ok=True)
    return found


def talk(folders: list[Path]) -> float:
    """Write an event every 0.2 s for a while; return the time of the last."""
    first_s = CLOCK.now()
    for number in range(round(TALKS_S / 0.2)):
        sleep_until(first_s + 0.2 * number, CLOCK)
        at = datetime.now(UTC)
        for folder in folders:
            hidden = folder / f".{at.timestamp()}"
            hidden.write_text(json.dumps({"at": at.isoformat()}))
            hidden.rename(folder / f"{at.timestamp()}.json")
    return at.timestamp()


if __name__ == "__main__":
    main()
