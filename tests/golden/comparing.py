"""Compares what the code says today with a file of this folder."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def compare(name: str, text: str) -> None:
    """Hold a text against the file of that name, or write it where the user says so."""
    path = FOLDER / name
    if os.environ.get("SLACKWATER_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{name} has changed; tests/golden/__init__.py says what to do"


def compare_lines(name: str, lines: Iterable[str]) -> None:
    compare(name, "".join(f"{line}\n" for line in lines))


def compare_json(name: str, value: Any) -> None:
    """Hold a value against the file of that name; the order of keys does not count."""
    compare(name, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def compare_shape(name: str, value: Any, *named: str) -> None:
    """Hold the key paths of a value and their JSON types against the file of that name.

    Parameters
    ----------
    named
        Paths of objects whose keys are names and not fields.
    """
    found: dict[str, set[str]] = {}
    _walk(json.loads(json.dumps(value)), "", frozenset(named), found)
    compare_lines(name, (f"{path}: {' | '.join(sorted(found[path]))}" for path in sorted(found)))


def _walk(value: Any, path: str, named: frozenset[str], found: dict[str, set[str]]) -> None:
    found.setdefault(path or ".", set()).add(_kind(value))
    if isinstance(value, dict):
        for key, each in value.items():
            _walk(each, f"{path}.{'*' if (path or '.') in named else key}", named, found)
    elif isinstance(value, list):
        for each in value:
            _walk(each, f"{path}[]", named, found)


def _kind(value: Any) -> str:
    """Of JSON; whole numbers are numbers, because a figure may happen to be one."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return kinds[type(value)]
