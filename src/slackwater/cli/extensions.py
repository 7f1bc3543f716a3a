"""Commands of other packages, found by the entry points ``slackwater.commands``.

An entry point names a ``typer.Typer``; the first line of its module's docstring is its help. The
module is read for that, and imported only when the command is asked for.
"""

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup
from typer.main import get_group

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "slackwater.commands"


class ExtensibleGroup(TyperGroup):
    """Looks for a command among the extensions when it has none of that name."""

    def list_commands(self, ctx: Any) -> list[str]:
        self._find_extensions()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self._find_extensions()
        return super().get_command(ctx, cmd_name)

    def _find_extensions(self) -> None:
        from importlib.metadata import entry_points  # slow to import; most commands need none

        for entry_point in entry_points(group=GROUP):
            self.commands.setdefault(entry_point.name, Extension(entry_point))


class Extension(TyperGroup):
    """Stands for a group of commands until that is asked for."""

    def __init__(self, entry_point: "EntryPoint") -> None:
        super().__init__(name=entry_point.name, help=_first_line(entry_point.module))
        self._entry_point = entry_point

    def load(self) -> TyperGroup:
        """Import the group."""
        group = get_group(self._entry_point.load())
        group.name, group.no_args_is_help = self.name, True
        return group

    def make_context(self, *arguments: Any, **details: Any) -> Any:
        return self.load().make_context(*arguments, **details)


def _first_line(module: str) -> str:
    """Read the first line of a module's docstring without importing the module.

    >>> _first_line("slackwater.cli.terminal")
    'What all commands share: where they print, how they write JSON, and how they say what they do.'
    """
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or ""
    return text.partition("\n")[0]
