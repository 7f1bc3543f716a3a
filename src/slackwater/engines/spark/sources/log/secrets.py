"""Secrets stay out of options, which Spark shows in plans and logs: options name a variable."""

import os

from slackwater.core.errors import UsageError

_PREFIX = "env:"


def check_secret(name: str, value: str) -> None:
    """Refuse a secret that is written out.

    >>> check_secret("password", "hunter2")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: password would show in Spark's plans: put it into an \
environment variable X and write 'env:X'
    """
    if not value.startswith(_PREFIX):
        raise UsageError(
            f"{name} would show in Spark's plans: put it into an environment variable X "
            "and write 'env:X'"
        )


def reveal(value: str) -> str:
    """What ``env:X`` stands for; other values stand for themselves."""
    if not value.startswith(_PREFIX):
        return value
    variable = value.removeprefix(_PREFIX)
    if variable not in os.environ:
        raise UsageError(
            f"the environment variable {variable} is not set where the source runs; set it "
            "(for executors: spark.executorEnv)"
        )
    return os.environ[variable]
