"""Which of Spark's classes writes checkpoints, where those are not on this machine.

The tuned session's class renames, which replaces a file on this machine only: elsewhere the first
attempt of a batch that is done again would stay. Spark's default replaces everywhere, on S3 by a
copy and two deletions for each file. Spark's module for clouds has a class that leaves those out;
nobody gets it unasked, because it takes uploads that failed for done (docs/lake.md).
"""

import logging
from collections.abc import Iterable

from pyspark.sql import SparkSession

from slackwater.common.places import local_path
from slackwater.engines.spark.session.addresses import address_of
from slackwater.engines.spark.session.versions import checkpoint_file_manager

log = logging.getLogger("slackwater.fleet")

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


def suit_checkpoints(spark: SparkSession, written: Iterable[str]) -> None:
    """Leave the choice to Spark for queries that start from now on, if one writes elsewhere.

    Another class than the tuned session's stays.

    Parameters
    ----------
    written
        Where checkpoints and logs of sinks are: paths and addresses.
    """
    if renames(spark.conf.get(MANAGER, None)) and is_elsewhere(spark, written):
        spark.conf.unset(MANAGER)
        log.info("checkpoints are written in Spark's default way from now on: one is elsewhere")


def renames(manager: str | None) -> bool:
    """Tell whether a class is the tuned session's, for this machine only."""
    return manager == checkpoint_file_manager()


def is_elsewhere(spark: SparkSession, written: Iterable[str]) -> bool:
    """Tell whether something is not on this machine."""
    return any(local_path(address_of(place, spark)) is None for place in written)
