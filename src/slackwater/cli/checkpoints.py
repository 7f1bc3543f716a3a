"""Commands that convert checkpoints of stopped queries."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.terminal import console
from slackwater.common.places import local_path
from slackwater.core.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

checkpoints = typer.Typer()


@checkpoints.command()
def adopt(
    checkpoint: Annotated[str, typer.Argument(help="Of a stopped plain query.")],
    copy: Annotated[
        str | None, typer.Argument(help="New folder for the copy; default: CHECKPOINT-gated.")
    ] = None,
) -> None:
    """Convert a copy of a plain checkpoint so that a source-gated query resumes from it.

    Addresses such as s3a://bucket/checkpoint are reached through Spark, with the settings of
    [spark] in the fleet.toml of this folder or above, if there is one.
    """
    from slackwater.engines.spark.checkpoints import convert as checkpoints

    copy = copy or f"{checkpoint.rstrip('/')}-gated"
    with _session(checkpoint, copy) as spark:
        places = _address(checkpoint, spark), _address(copy, spark)
        console.print(str(checkpoints.adopt(*places, spark)), highlight=False)


@checkpoints.command()
def release(
    checkpoint: Annotated[str, typer.Argument(help="Of a stopped source-gated query.")],
    copy: Annotated[
        str | None, typer.Argument(help="New folder for the copy; default: CHECKPOINT-plain.")
    ] = None,
) -> None:
    """Convert a copy of a source-gated checkpoint so that plain Spark resumes from it.

    Addresses such as s3a://bucket/checkpoint are reached through Spark, with the settings of
    [spark] in the fleet.toml of this folder or above, if there is one.
    """
    from slackwater.engines.spark.checkpoints import convert as checkpoints

    copy = copy or f"{checkpoint.rstrip('/')}-plain"
    with _session(checkpoint, copy) as spark:
        places = _address(checkpoint, spark), _address(copy, spark)
        console.print(str(checkpoints.release(*places, spark)), highlight=False)


@contextmanager
def _session(*places: str) -> "Iterator[SparkSession | None]":
    """Start Spark, if one of the places is not on this machine."""
    if all(local_path(place) is not None for place in places):
        yield None
        return
    from slackwater.operations import fleet_file as config
    from slackwater.operations.launch import start_session

    try:
        found = config.find(None, Path.cwd())
    except UsageError:  # there is none: Spark's own configuration may know
        section = config.SparkSection(master="local[1]")
    else:
        section = config.load(found).spark
    spark = start_session("slackwater-checkpoints", section)
    try:
        yield spark
    finally:
        spark.stop()


def _address(place: str, spark: "SparkSession | None") -> str:
    """Return a path as one of this machine, with Spark as without it: it was typed here."""
    path = local_path(place)
    return place if path is None or spark is None else f"file://{path.absolute()}"
