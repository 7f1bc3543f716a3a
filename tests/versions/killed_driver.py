"""`slackwater run` on a windowed count over files, whose driver is killed."""

from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.driver_process import DriverProcess
from tests.versions.files import write_files


class KilledDriver(DriverProcess):
    """One query, with whichever gate."""

    def __init__(self, folder: Path, gate: str, files: int) -> None:
        super().__init__(folder)
        source = write_files(folder / "in", files)
        (folder / "fleet.toml").write_text(
            f"policy = 'fcfs'\ngate = '{gate}'\nname = 'versions'\n"
            "[spark]\nmaster = 'local[2]'\n[spark.conf]\n'spark.sql.shuffle.partitions' = 2\n"
            "[queries.counted]\nquery = 'tests.versions.pipeline:counted'\nformat = 'parquet'\n"
            f"path = 'out'\narguments = {{ folder = '{source}' }}\n"
        )

    def batches(self) -> int:
        """Return how many the sink has committed."""
        log = self.folder / "out" / "_spark_metadata"
        return sum(1 for path in log.glob("*") if path.name[0].isdigit())

    def rows(self, spark: SparkSession) -> Counter[Any]:
        """Return what is in the sink."""
        self.runs()
        if not self.batches():
            return Counter()
        schema = "end long, key long, count long"
        frame = spark.read.schema(schema).parquet(str(self.folder / "out"))
        return Counter(tuple(row) for row in frame.collect())
