"""Names of the form ``module:attribute``, as users write them in files and on command lines."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from slackwater.core.errors import UsageError


def hint(wrong: str, known: Iterable[str]) -> str:
    """What may have been meant by a key that there is not.

    >>> hint("perod", ["name", "period"]), hint("x", ["name", "period"])
    ("did you mean 'period'?", 'known: name, period')
    """
    names = list(known)
    near = get_close_matches(wrong, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


def load_object(path: str) -> Any:
    """Import what ``module:attribute`` names.

    >>> load_object("math:sqrt")(9)
    3.0
    >>> load_object("math:sqrtt")
    Traceback (most recent call last):
    ...
    slackwater.core.errors.UsageError: math has no 'sqrtt'. Did you mean 'sqrt'?
    """
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise UsageError(f"{path!r} is not of the form module:attribute")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        own = error.name is not None and f"{module_name}.".startswith(f"{error.name}.")
        remedy = "is its folder on PYTHONPATH?" if own else f"{module_name} needs it: install it"
        raise UsageError(f"{path!r}: no module named {error.name!r}; {remedy}") from error
    except Exception as error:
        raise UsageError(
            f"{path!r}: importing {module_name} failed: {type(error).__name__}: {error}"
        ) from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        near = get_close_matches(attribute, dir(module), n=1)
        meant = f". Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{module_name} has no {attribute!r}{meant}") from None
