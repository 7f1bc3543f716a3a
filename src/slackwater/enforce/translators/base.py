"""What all translators share."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from slackwater.core.entities import Operator, Scale
from slackwater.core.errors import UsageError
from slackwater.enforce.settings import Setting


@dataclass(frozen=True, slots=True)
class Ranked:
    """An operator and how important it is."""

    operator: Operator
    priority: float
    engine: str = ""

    @property
    def query(self) -> str:
        """The query's name, told apart from those of other engines."""
        return f"{self.engine}/{self.operator.query}" if self.engine else self.operator.query

    @property
    def name(self) -> str:
        return f"{self.engine}/{self.operator.name}" if self.engine else self.operator.name


class Translator(ABC):
    """Turns priorities into settings; never acts, so a plan can be printed as well."""

    name: ClassVar[str] = ""  # as users write it
    needs: ClassVar[frozenset[str]] = frozenset()  # rights: nice, groups, real-time
    sets_helpers: ClassVar[bool] = False  # also threads that are no operator's

    def plan(self, ranked: Iterable[Ranked], scale: Scale) -> list[Setting]:
        """Return the settings wanted now. Operators without threads here are passed over."""
        present = [
            each
            for each in ranked
            if each.operator.threads and (self.sets_helpers or not each.operator.helper)
        ]
        return self._plan(present, scale) if present else []

    @abstractmethod
    def _plan(self, ranked: Sequence[Ranked], scale: Scale) -> list[Setting]:
        """Plan for ``ranked``, which is not empty; everyone in it has a thread."""


def check_range(what: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter that the kernel would refuse."""
    if not low <= value <= high:
        raise UsageError(f"{what} must be between {low:g} and {high:g}, not {value:g}")
