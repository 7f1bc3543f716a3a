"""Options from dataclasses: types, names, what is refused; and what the command line loads."""

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from slackwater.core import UsageError
from slackwater_bench.options import Given, option, with_options


@dataclass(frozen=True, kw_only=True)
class Wish:
    """All kinds of fields."""

    hidden: int = 7
    counts: tuple[int, ...] = option((4, 8), "How many.")
    names: tuple[str, ...] = option(("a",), flags="--name")
    pause_s: float = option(1.5, least=1)
    strict: bool = option(False)
    kind: str = option("one", choices=("one", "two"))
    extra: dict[str, Any] = option(dict)
    texts: dict[str, str] = option(dict)
    limit: float | None = option(None)


def made(*arguments: str, given: bool = False, **fixed: Any) -> tuple[Any, Result]:
    seen: list[Any] = []

    def whole(wish: Wish, others: int = 3) -> None:
        seen.append((wish, others))

    def some(wish: Given[Wish], others: int = 3) -> None:
        seen.append((wish, others))

    app = typer.Typer()
    app.command()(with_options(some if given else whole, **fixed))
    result = CliRunner().invoke(app, arguments)
    return seen[0] if seen else None, result


def test_without_a_word_it_is_the_dataclass_as_it_comes() -> None:
    assert made()[0] == (Wish(), 3)


def test_what_is_typed_becomes_what_the_field_is() -> None:
    words = "--counts 1,2 --name x,y --pause 2 --strict --kind two --limit 0.5 --others 4"
    pairs = "--extra a=1 --extra b=x --texts c=true"
    wanted = Wish(
        counts=(1, 2),
        names=("x", "y"),
        pause_s=2.0,
        strict=True,
        kind="two",
        limit=0.5,
        extra={"a": 1, "b": "x"},
        texts={"c": "true"},
        hidden=9,
    )
    assert made(*words.split(), *pairs.split(), hidden=9)[0] == (wanted, 4)


def test_given_has_only_what_was_typed() -> None:
    assert made("--counts", "3", "--no-strict", given=True)[0] == (
        {"counts": (3,), "strict": False},
        3,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--kind three", "--kind takes one, two, not 'three'"),
        ("--counts few", "--counts takes numbers from 1"),
        ("--extra a", "'a' is not of the form key=value"),
    ],
)
def test_what_cannot_be_is_one_clear_line(words: str, message: str) -> None:
    seen, result = made(*words.split())
    assert seen is None
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


def test_least_values_are_the_command_line_library_s() -> None:
    assert made("--pause", "0.5")[1].exit_code == 2


@pytest.mark.parametrize("module", ["slackwater_bench.commands", "slackwater.report.result"])
def test_neither_plots_nor_spark_are_loaded_to_read_options(module: str) -> None:
    heavy = "[m for m in ('matplotlib', 'pyspark.sql', 'pandas') if m in sys.modules]"
    command = [sys.executable, "-c", f"import {module}, sys; print({heavy})"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
