"""A fleet that pretends, to be recorded."""

from tests.operations.dashboard.conftest import controller, fleet, path

__all__ = ["controller", "fleet", "path"]
