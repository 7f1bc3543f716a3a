"""Options as texts, which Spark carries from the driver to its Python processes, and as types."""

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Literal, get_origin

from slackwater.common.plugins import hint, split_names
from slackwater.core.errors import UsageError

_SECRET_PREFIX = "env:"


def parse_texts(kind: type[Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a dataclass that texts give."""
    known = _parsers(kind)
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in known:
            raise UsageError(f"the source has no option {name!r}; {hint(name, known)}")
        try:
            values[name] = known[name](text)
        except ValueError as error:
            raise UsageError(f"the option {name} is wrong: {error}") from None
    return values


def write_texts(options: Any) -> dict[str, str]:
    """Return the fields of a dataclass as texts; those without a value are left out."""
    values = {name: getattr(options, name) for name in _parsers(type(options))}
    return {name: _text(value) for name, value in values.items() if value is not None}


def check_names(names: tuple[str, ...], what: str) -> None:
    """Refuse what would not survive being written as a text."""
    if not names:
        raise UsageError(f"name at least one {what}")
    if len(set(names)) < len(names):
        raise UsageError(f"a {what} is named twice: {', '.join(names)}")
    for name in names:
        if not name or "," in name or name != name.strip():
            raise UsageError(f"{name!r} cannot be read: a {what}'s name is without commas")


def check_secret(name: str, value: str) -> None:
    """Refuse a secret that is written out: Spark shows options in plans and logs.

    >>> check_secret("password", "hunter2")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: password would show in Spark's plans: put it into an \
environment variable X and write 'env:X'
    """
    if not value.startswith(_SECRET_PREFIX):
        raise UsageError(
            f"{name} would show in Spark's plans: put it into an environment variable X "
            "and write 'env:X'"
        )


def reveal(value: str) -> str:
    """Return what ``env:X`` stands for; other values stand for themselves."""
    if not value.startswith(_SECRET_PREFIX):
        return value
    variable = value.removeprefix(_SECRET_PREFIX)
    if variable not in os.environ:
        raise UsageError(
            f"the environment variable {variable} is not set where the source runs; set it "
            "(for executors: spark.executorEnv)"
        )
    return os.environ[variable]


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text.lower() == "true"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parsers(kind: type[Any]) -> dict[str, Callable[[str], Any]]:
    """Return what makes values of texts, for each field that can be one."""
    plain = {f.name: str if get_origin(f.type) is Literal else f.type for f in fields(kind)}
    return {name: _PARSERS[kind] for name, kind in plain.items() if kind in _PARSERS}


_PARSERS: dict[Any, Callable[[str], Any]] = {
    str: str,
    str | None: str,
    int: int,
    int | None: int,
    float: float,
    float | None: float,
    bool: _truth,
    tuple[str, ...]: split_names,
}
