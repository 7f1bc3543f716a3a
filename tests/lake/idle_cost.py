"""What an idle Delta table at an S3 server costs: to ask, to list its log, and an idle trigger.

``VENV=.venv .venv/spark-4.1/bin/python -m tests.lake.idle_cost`` prints a row a length of the log.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from slackwater.engines.spark.checkpoints.files import hadoop_folder
from slackwater.engines.spark.gates.clock import execution_of
from slackwater.engines.spark.session.session import session
from slackwater.engines.spark.sources.arrivals import DeltaLog, HadoopFolder
from tests.lake import jars
from tests.lake.s3_server import S3Server
from tests.lake.tables import append

VERSIONS = (10, 100, 1500)
LOOKS, TRIGGERS = 20, 10  # one a second
EMPTY = '{"commitInfo":{"timestamp":1700000000000,"operation":"WRITE","operationParameters":{}}}\n'


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = S3Server(Path(folder))
        spark = session("cost", "local[2]", conf=jars.settings(server.address, folder))
        spark.sparkContext.setLogLevel("OFF")
        print("| versions | asked: requests, ms | listed: requests, ms | a trigger: requests |")
        for versions in VERSIONS:
            place = f"s3a://{jars.BUCKET}/n{versions}"
            append(spark, place, 0)
            table = hadoop_folder(place, spark)
            for number in range(1, versions):
                table.write(f"_delta_log/{number:020d}.json", EMPTY)
            rows = spark.readStream.format("delta").load(place)
            writer = rows.writeStream.format("noop").trigger(processingTime="1 second")
            query = writer.start()
            query.processAllAvailable()
            execution = execution_of(query._jsq)
            source, log = execution.sources().apply(0), f"{place}/_delta_log"
            before = server.requests(f"n{versions}").total()
            time.sleep(TRIGGERS)
            triggers = (server.requests(f"n{versions}").total() - before) / TRIGGERS
            query.stop()
            asked = cost(server, versions, DeltaLog(log, source, execution).mark)
            listed = cost(server, versions, HadoopFolder(log, execution).mark)
            print(f"| {versions} | {asked} | {listed} | {triggers:g} |", flush=True)
        spark.stop()
        server.stop()


def cost(server: S3Server, versions: int, look: Callable[[], object]) -> str:
    """Return the requests and the milliseconds of a look."""
    look()
    before, began_s = server.requests(f"n{versions}").total(), time.monotonic()
    for _ in range(LOOKS):
        look()
    took_ms = 1000 * (time.monotonic() - began_s) / LOOKS
    return f"{(server.requests(f'n{versions}').total() - before) / LOOKS:g}, {took_ms:.1f}"


if __name__ == "__main__":
    main()
