"""What ``scripts/lake.sh`` has fetched, and the settings of Spark that go with it."""

import os
import sys
from pathlib import Path

FOLDER = Path(os.environ.get("VENV", sys.prefix)).absolute() / "lake"
SPARK = "4.1"
BUCKET = "lake"


def why_not() -> str | None:
    """Return why tests with it cannot run here; None: they can."""
    import pyspark

    if not (FOLDER / "complete").exists():
        return "no Delta, Iceberg and S3: `sh scripts/lake.sh` fetches them, with Maven"
    if not pyspark.__version__.startswith(SPARK):
        return f"for Spark {SPARK}: `make test-lake` runs it there"
    return None


def settings(address: str, warehouse: str) -> dict[str, str]:
    """Return settings of Spark: jars, catalogs, the server.

    Parameters
    ----------
    address
        Of the S3 server.
    warehouse
        Of the Iceberg catalog ``lake``.
    """
    delta, iceberg = "io.delta.sql.DeltaSparkSessionExtension", "org.apache.iceberg.spark"
    return {
        "spark.jars": ",".join(str(jar) for jar in sorted(FOLDER.glob("*.jar"))),
        "spark.sql.extensions": f"{delta},{iceberg}.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.lake": f"{iceberg}.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": warehouse,
        "spark.hadoop.fs.s3a.endpoint": address,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": "nobody",
        "spark.hadoop.fs.s3a.secret.key": "nothing",
        "spark.databricks.delta.snapshotPartitions": "2",  # of 50
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
    }
