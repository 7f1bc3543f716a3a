"""Families of classes, one member a file, found by name; a user's own is ``module:Class``."""

import inspect
import pkgutil
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

from slackwater.common.loading import hint, load_object
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
    """

    def __init__(self, package: str, base: type[Member], kind: str) -> None:
        self.package = package
        self.base = base
        self.kind = kind

    def names(self) -> list[str]:
        """The members that come with Slackwater."""
        modules = pkgutil.iter_modules(import_module(self.package).__path__)
        files = (module.name.replace("_", "-") for module in modules if module.name[0] != "_")
        return [name for name in files if self._in_file_of(name) is not None]

    def load(self, name: str, /, **parameters: Any) -> Member:
        """Make a member from its name or ``module:Class``; extra keys go to its constructor."""
        member = load_object(name) if ":" in name else self._by_name(name)
        if not (isinstance(member, type) and issubclass(member, self.base)):
            wanted = f"{self.package}.{self.base.__name__}"
            article = "an" if self.kind[0] in "aeiou" else "a"
            raise UsageError(f"{name} is not {article} {self.kind}: derive it from {wanted}")
        self._refuse_unknown(name, member, parameters)
        try:
            return member(**parameters)
        except TypeError as error:
            raise UsageError(f"{self.kind} {name}: {error}") from error

    def _refuse_unknown(self, name: str, member: type, parameters: Iterable[str]) -> None:
        taken = inspect.signature(member).parameters
        if any(each.kind is each.VAR_KEYWORD for each in taken.values()):
            return
        for key in parameters:
            if key not in taken:
                raise UsageError(f"{self.kind} {name}: unknown key {key!r}; {hint(key, taken)}")

    def _by_name(self, name: str) -> type[Member]:
        found = self._in_file_of(name)
        if found is None:
            known = self.names()
            near = get_close_matches(name, known, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"unknown {self.kind} {name!r}.{meant} Known: {', '.join(known)}, "
                "or your own as module:Class"
            )
        return found

    def _in_file_of(self, name: str) -> type[Member] | None:
        """The member of that name in the file of that name; other files are parts of members."""
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
