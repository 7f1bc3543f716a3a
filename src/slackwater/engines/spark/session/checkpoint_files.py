"""Which of Spark's classes writes checkpoints, where those are not on this machine.

The tuned session's class renames, which replaces a file on this machine only: elsewhere the first
attempt of a batch that is done again would stay. Spark's default replaces everywhere, on S3 by a
copy and two deletions for each file. Spark's module for clouds has a class that leaves those out;
nobody gets it unasked, because it takes uploads that failed for done (docs/lake.md).
"""

from collections.abc import Iterable

from pyspark.sql import SparkSession

from slackwater.common.places import local_path
from slackwater.engines.spark.session.addresses import address_of
from slackwater.engines.spark.session.versions import checkpoint_file_manager

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


def suit_checkpoints(spark: SparkSession, written: Iterable[str]) -> None:
    """Leave the choice to Spark for queries that start from now on, if one writes elsewhere.

    A class that somebody else has chosen stays.

    Parameters
    ----------
    written
        Where checkpoints and logs of sinks are: paths and addresses.
    """
    if is_unsuited(spark, written):
        spark.conf.unset(MANAGER)


def is_unsuited(spark: SparkSession, written: Iterable[str]) -> bool:
    """Tell whether something is written elsewhere by a class that is for this machine only."""
    if spark.conf.get(MANAGER, None) != checkpoint_file_manager():
        return False
    return any(local_path(address_of(place, spark)) is None for place in written)
