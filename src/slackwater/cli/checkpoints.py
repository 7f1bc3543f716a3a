"""Commands that convert checkpoints of stopped queries."""

from typing import Annotated

import typer

from slackwater.cli.terminal import console

checkpoints = typer.Typer()


@checkpoints.command()
def adopt(
    checkpoint: Annotated[str, typer.Argument(help="Of a stopped plain query.")],
    copy: Annotated[
        str | None, typer.Argument(help="New folder for the copy; default: CHECKPOINT-gated.")
    ] = None,
) -> None:
    """Convert a copy of a plain checkpoint so that a source-gated query resumes from it."""
    from slackwater.engines.spark.checkpoints import convert as checkpoints

    copy = copy or f"{checkpoint.rstrip('/')}-gated"
    console.print(str(checkpoints.adopt(checkpoint, copy)), highlight=False)


@checkpoints.command()
def release(
    checkpoint: Annotated[str, typer.Argument(help="Of a stopped source-gated query.")],
    copy: Annotated[
        str | None, typer.Argument(help="New folder for the copy; default: CHECKPOINT-plain.")
    ] = None,
) -> None:
    """Convert a copy of a source-gated checkpoint so that plain Spark resumes from it."""
    from slackwater.engines.spark.checkpoints import convert as checkpoints

    copy = copy or f"{checkpoint.rstrip('/')}-plain"
    console.print(str(checkpoints.release(checkpoint, copy)), highlight=False)
