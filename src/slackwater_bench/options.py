"""Options of the command line from the dataclasses that they fill: each is written once."""

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import typer

from slackwater.cli.terminal import counts, texts
from slackwater.core.errors import UsageError

Resumed = Annotated[bool, typer.Option("--resume", help="Do not repeat trials that --json holds.")]
Kept = Annotated[
    Path | None, typer.Option("--json", help="Keep the result here, after every trial.")
]

T = TypeVar("T")
_KEY = "option"


class Given(dict[str, Any], Generic[T]):
    """Those fields of a dataclass that a user has given; the others are left to its maker."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """What a field says of its option."""

    help: str
    flags: str | None = None  # default: the field's name without its unit
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


def option(
    default: Any,
    help: str = "",
    *,
    flags: str | None = None,
    least: float | None = None,
    most: float | None = None,
    choices: Iterable[str] = (),
) -> Any:
    """Make a dataclass field that is an option of a command.

    Parameters
    ----------
    default
        Of the field; ``dict`` for an empty one.
    flags
        Where the name of the field, without its unit, does not do.
    least, most, choices
        What is allowed.
    """
    about = {_KEY: Option(help=help, flags=flags, least=least, most=most, choices=tuple(choices))}
    if default is dict:
        return field(default_factory=dict, metadata=about)
    return field(default=default, metadata=about)


def with_options(
    function: Callable[..., None], first: str = "", **fixed: Any
) -> Callable[..., None]:
    """Make a command of a function: its dataclass parameters become the options of their fields.

    Parameters
    ----------
    function
        A parameter whose type is a dataclass gets one made from the options, a parameter
        ``Given[…]`` what the user gave of one; all others stay as they are.
    first
        Options that come first in the help, by name of their fields.
    fixed
        Fields that are no options here.

    >>> @dataclass(frozen=True)
    ... class Timing:
    ...     warmup_s: float = option(5.0, "Not measured.", least=0)
    ...     counts: tuple[int, ...] = option((4, 8))
    >>> def run(timing: Timing, seed: int = 1) -> None:
    ...     print(timing, seed)
    >>> command = with_options(run)
    >>> list(inspect.signature(command).parameters)
    ['warmup_s', 'counts', 'seed']
    >>> command(warmup_s=2.0, counts="1,2", seed=3)
    Timing(warmup_s=2.0, counts=(1, 2)) 3
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {}
    found: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if is_dataclass(kind) or get_origin(kind) is Given:
            groups[name] = kind
            found |= {each.name: each for each in _parameters(kind)}
        else:
            found[name] = parameter.replace(annotation=kind, kind=parameter.KEYWORD_ONLY)

    def command(**values: Any) -> None:
        made = {name: _made(kind, values, fixed) for name, kind in groups.items()}
        function(**made, **{name: values[name] for name in hints if name in values})

    order = [*first.split(), *(name for name in found if name not in first.split())]
    parameters = [found[name] for name in order]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    return command


def _parameters(kind: Any) -> list[inspect.Parameter]:
    """Return one parameter, as typer reads it, for each field that is an option."""
    asked = get_origin(kind) is not Given
    made = kind if asked else get_args(kind)[0]
    hints = get_type_hints(made)
    return [_parameter(each, hints[each.name], asked) for each in _options(made)]


def _parameter(each: "Field[Any]", hint: Any, asked: bool) -> inspect.Parameter:
    about: Option = each.metadata[_KEY]
    default: Any = None if each.default is MISSING else each.default
    if _items(hint) is not None:
        default = ",".join(f"{item}" for item in default)
        hint = str
    elif get_origin(hint) is dict:
        hint = list[str] | None
    if not asked:
        hint, default = hint | None, None
    shown = typer.Option(_flags(each), help=about.help or None, min=about.least, max=about.most)
    return inspect.Parameter(
        each.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[hint, shown],
    )


def _made(kind: Any, values: dict[str, Any], fixed: dict[str, Any]) -> Any:
    asked = get_origin(kind) is not Given
    made = kind if asked else get_args(kind)[0]
    hints = get_type_hints(made)
    read = {
        each.name: _read(each, hints[each.name], values[each.name])
        for each in _options(made)
        if asked or values[each.name] is not None
    }
    if not asked:
        return Given(read)
    known = {each.name for each in fields(made)}
    return made(**read, **{name: value for name, value in fixed.items() if name in known})


def _read(each: "Field[Any]", hint: Any, value: Any) -> Any:
    """Return the field's value for what a user typed."""
    about: Option = each.metadata[_KEY]
    flag = _flags(each).partition("/")[0]
    if about.choices and value not in about.choices:
        raise UsageError(f"{flag} takes {', '.join(about.choices)}, not {value!r}")
    item = _items(hint)
    if item is int:
        return tuple(counts(value, flag))
    if item is not None:
        return tuple(texts(value))
    if get_origin(hint) is dict:
        return parse_pairs(value or [], str if get_args(hint)[1] is str else parse_value)
    return value


def _options(kind: Any) -> "list[Field[Any]]":
    return [each for each in fields(kind) if _KEY in each.metadata]


def _flags(each: "Field[Any]") -> str:
    if given := each.metadata[_KEY].flags:
        return str(given)
    name = each.name.removesuffix("_s").replace("_", "-")
    return f"--{name}/--no-{name}" if isinstance(each.default, bool) else f"--{name}"


def _items(hint: Any) -> type | None:
    """Return the type of the items of a list with commas."""
    if get_origin(hint) is tuple:
        item: type = get_args(hint)[0]
        return item
    return None


def parse_value(text: str) -> Any:
    """Read a value as typed: JSON where it is, else the text itself.

    >>> parse_value("0.9"), parse_value("paper")
    (0.9, 'paper')
    """
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_pairs(
    texts: Sequence[str], value_of: Callable[[str], Any] = parse_value
) -> dict[str, Any]:
    """Read parameters such as ``best=-10``.

    >>> parse_pairs(["best=-10", "by=query"])
    {'best': -10, 'by': 'query'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise UsageError(f"{text!r} is not of the form key=value")
        found[key] = value_of(value)
    return found


def split_parameters(text: str) -> tuple[str, dict[str, Any]]:
    """Split ``name:key=value:…`` or ``module:Class:key=value:…`` into name and parameters.

    >>> split_parameters("ysb:campaigns=10"), split_parameters("mine:Own")
    (('ysb', {'campaigns': 10}), ('mine:Own', {}))
    """
    parts = text.split(":")
    name = ":".join(part for part in parts if "=" not in part)
    return name, parse_pairs([part for part in parts if "=" in part])
