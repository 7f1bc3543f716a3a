"""Classes and functions found by name: families with one member a file, and ``module:name``.

Other distributions add members under an entry-point group, ``NAME = "module:Class"``.
"""

import inspect
import pkgutil
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from slackwater.core.errors import UsageError

Member = TypeVar("Member")


class Family(Generic[Member]):
    """All classes of a package that derive from ``base`` and are called like their file.

    Parameters
    ----------
    package
        Where the files are.
    base
        What all members derive from; it has a ``name``, as users write it.
    kind
        What a member is, for messages.
    group
        Entry points under which other distributions register members of theirs.
    """

    def __init__(
        self, package: str, base: type[Member], kind: str, group: str | None = None
    ) -> None:
        self.package = package
        self.base = base
        self.kind = kind
        self.group = group

    def names(self) -> list[str]:
        """List the members that come with Slackwater, then those of other distributions."""
        modules = pkgutil.iter_modules(import_module(self.package).__path__)
        files = (module.name.replace("_", "-") for module in modules if module.name[0] != "_")
        ours = [name for name in files if self._in_file_of(name) is not None]
        return ours + sorted(self._registered().keys() - set(ours))

    def fitting(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return those parameters that a member takes, of some that were meant for another."""
        taken = inspect.signature(self._find(name)).parameters
        everything = _takes_everything(taken)
        return {key: value for key, value in parameters.items() if everything or key in taken}

    def _find(self, name: str) -> type[Member]:
        member = load_object(name) if ":" in name else self._by_name(name)
        if not (isinstance(member, type) and issubclass(member, self.base)):
            wanted = f"{self.package}.{self.base.__name__}"
            article = "an" if self.kind[0] in "aeiou" else "a"
            raise UsageError(f"{name} is not {article} {self.kind}: derive it from {wanted}")
        return member

    def load(self, name: str, /, **parameters: Any) -> Member:
        """Make a member from its name or ``module:Class``; extra keys go to its constructor."""
        member = self._find(name)
        self._refuse_unknown(name, member, parameters)
        try:
            return member(**parameters)
        except TypeError as error:
            raise UsageError(f"{self.kind} {name}: {error}") from error

    def _refuse_unknown(self, name: str, member: type, parameters: Iterable[str]) -> None:
        taken = inspect.signature(member).parameters
        if _takes_everything(taken):
            return
        for key in parameters:
            if key not in taken:
                raise UsageError(f"{self.kind} {name}: unknown key {key!r}; {hint(key, taken)}")

    def _registered(self) -> dict[str, str]:
        """Return where other distributions have their members, by name."""
        if self.group is None:
            return {}
        return {found.name: found.value for found in entry_points(group=self.group)}

    def _by_name(self, name: str) -> Any:
        found = self._in_file_of(name)
        if found is None and (path := self._registered().get(name)) is not None:
            return load_object(path)
        if found is None:
            known = self.names()
            raise UsageError(
                f"unknown {self.kind} {name!r}.{_question(name, known)} Known: {', '.join(known)}, "
                "or your own as module:Class"
            )
        return found

    def _in_file_of(self, name: str) -> type[Member] | None:
        """Find the member of that name in the file of that name.

        Other files of the package are parts of members.
        """
        path = f"{self.package}.{name.replace('-', '_')}"
        if not name.replace("-", "_").isidentifier() or find_spec(path) is None:
            return None
        for found in vars(import_module(path)).values():
            if (
                isinstance(found, type)
                and issubclass(found, self.base)
                and getattr(found, "name", "") == name
            ):
                return found
        return None


def _takes_everything(taken: Mapping[str, inspect.Parameter]) -> bool:
    return any(each.kind is each.VAR_KEYWORD for each in taken.values())


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
        question = _question(attribute, dir(module))
        end = "." if question else ""
        raise UsageError(f"{module_name} has no {attribute!r}{end}{question}") from None


def split_names(text: str) -> tuple[str, ...]:
    """Split names that are separated by commas.

    >>> split_names("ads, clicks")
    ('ads', 'clicks')
    """
    return tuple(name.strip() for name in text.split(",") if name.strip())


def hint(wrong: str, known: Iterable[str]) -> str:
    """Say what may have been meant by a key that there is not.

    >>> hint("perod", ["name", "period"]), hint("x", ["name", "period"])
    ("did you mean 'period'?", 'known: name, period')
    """
    names = list(known)
    near = nearest(wrong, names)
    return f"did you mean {near!r}?" if near else f"known: {', '.join(names)}"


def _question(wrong: str, known: Iterable[str]) -> str:
    near = nearest(wrong, known)
    return f" Did you mean {near!r}?" if near else ""


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """Return the name that may have been meant, if one comes near."""
    return next(iter(get_close_matches(wrong, list(known), n=1)), None)
