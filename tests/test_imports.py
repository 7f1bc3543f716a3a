"""Imports point downwards only, as docs/architecture.md draws it."""

import ast
from pathlib import Path

import pytest

import slackwater

ROOT = Path(slackwater.__file__).parent

# A package may import itself and the packages on lower lines.
LAYERS = [
    {"core"},
    {"project"},
    {"metrics", "progress", "terminal", "traffic"},
    {"policies", "quality", "sampling"},
    {"engines", "enforce"},
    {"middleware"},
    {"workloads"},
    {"bench"},
    {"simulate"},
    {"spark", "config", "doctor", "explain"},
    {"launch", "plan"},
    {"workers"},
    {"dashboard"},
    {"recording"},
    {"running"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imports(path: Path) -> set[str]:
    """First parts below ``slackwater`` of everything that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "slackwater":
                names = [f"slackwater.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("slackwater.")}
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if package == "__init__":
        return
    for other in imports(path) - {package}:
        assert LEVEL[other] < LEVEL[package], f"{package} must not import {other}"


def test_every_package_has_its_place() -> None:
    present = {p.name.removesuffix(".py") for p in ROOT.iterdir() if not p.name.startswith("__")}
    assert present <= LEVEL.keys()


def test_the_controller_process_needs_no_spark() -> None:
    """It starts in a fraction of a second and survives a broken Spark."""
    import subprocess
    import sys

    code = "import slackwater.engines.spark.controller, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
