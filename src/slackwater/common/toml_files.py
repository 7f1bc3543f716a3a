"""TOML files with a model; what is wrong with one is told in one line."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from slackwater.common.plugins import hint
from slackwater.core.errors import UsageError

M = TypeVar("M", bound=BaseModel)


def load_toml(path: Path, model: type[M]) -> M:
    """Read and check a file."""
    try:
        return model.model_validate(tomllib.loads(path.read_text()))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not a text file in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None
    except ValidationError as error:
        raise UsageError(f"{path}: {_explain(error, model)}") from None


def _explain(error: ValidationError, model: type[BaseModel]) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _keys_at(model, first["loc"][:-1])
        return f"unknown key '{where}'; {hint(str(first['loc'][-1]), known)}"
    if first["type"] == "missing":
        return f"'{where}' is missing"
    said = first["msg"].removeprefix("Value error, ")
    given = first["input"]
    shown = f", not {given!r}" if isinstance(given, str | int | float) else ""
    return f"'{where}': {said}{shown}"


def _keys_at(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Return the keys of the section at a place.

    Names that users choose lead nowhere by themselves.

    >>> class Query(BaseModel):
    ...     priority: float = 1.0
    >>> class File(BaseModel):
    ...     queries: dict[str, Query] = {}
    >>> _keys_at(File, ("queries", "clicks"))
    ['priority']
    """
    for part in location:
        field = model.model_fields.get(str(part))
        model = model if field is None else next(_models(field.annotation), model)
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
