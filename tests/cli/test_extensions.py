"""What a command loads: its own modules only, and other packages' commands when they are called."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import atexit, json, sys
from slackwater.cli.main import main
atexit.register(lambda: print("\\n" + json.dumps(sorted(sys.modules))))
sys.argv = ["slackwater", *sys.argv[1:]]
main()
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """Run a command and return the names of the modules that were loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        env=os.environ | {"SLACKWATER_RUNTIME_DIR": str(folder)},
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=100,
        check=False,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def ours(modules: set[str]) -> set[str]:
    return {m for m in modules if m.split(".")[0] in ("slackwater", "slackwater_bench")}


@pytest.mark.parametrize("command", ["off", "on"])
def test_off_loads_little(tmp_path: Path, command: str) -> None:
    found = loaded(tmp_path, command)
    assert 10 < len(ours(found)) < 40
    assert not {"numpy", "scipy", "pyspark", "pyarrow", "matplotlib"} & found


def test_help_lists_other_packages_commands_without_loading_them(tmp_path: Path) -> None:
    found = loaded(tmp_path, "--help")
    assert "slackwater_bench.commands" not in found
    assert len(ours(found)) < 40


def test_a_command_of_another_package_is_loaded_when_it_is_called(tmp_path: Path) -> None:
    assert "slackwater_bench.simulate.commands" in loaded(tmp_path, "simulate", "--help")
