"""What a command loads: its own modules only, and other packages' commands when they are called."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from slackwater.ipc.unix_socket import listen

CODE = """
import atexit, json, sys
from slackwater.cli.main import main
atexit.register(lambda: print("\\n" + json.dumps(sorted(sys.modules))))
sys.argv = ["slackwater", *sys.argv[1:]]
main()
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """Run a command and return the names of the modules that were loaded at its end."""
    return set(json.loads(run(folder, CODE, *arguments).stdout.splitlines()[-1]))


def run(folder: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"SLACKWATER_RUNTIME_DIR": str(folder)},
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=100,
        check=False,
    )


def ours(modules: set[str]) -> set[str]:
    return {m for m in modules if m.split(".")[0] in ("slackwater", "slackwater_bench")}


@pytest.mark.parametrize("command", ["off", "on"])
def test_off_loads_little(tmp_path: Path, command: str) -> None:
    found = loaded(tmp_path, command)
    assert 10 < len(ours(found)) < 40
    assert not {"numpy", "scipy", "pyspark", "pyarrow", "matplotlib"} & found


def test_off_loads_little_where_a_fleet_answers(tmp_path: Path) -> None:
    """Also where it looks into the fleet file for the fleet's name."""
    (tmp_path / "fleet.toml").write_text("name = 'ads'\n[queries.q]\nquery = 'pipeline:rate'\n")
    runtime = tmp_path / "slackwater"
    runtime.mkdir(mode=0o700)
    asked: list[bytes] = []

    def answer() -> None:
        connection, _ = server.accept()
        with connection:
            asked.append(connection.recv(1 << 16))
            connection.sendall(b'{"op":"answer","value":{"open":true}}\n')

    with listen(runtime / "ads.sock") as server:
        server.settimeout(100)
        thread = threading.Thread(target=answer)
        thread.start()
        found = loaded(tmp_path, "off")
        thread.join()
    assert json.loads(asked[0])["action"] == "off"
    assert len(ours(found)) < 40


def test_help_lists_other_packages_commands_without_loading_them(tmp_path: Path) -> None:
    found = loaded(tmp_path, "--help")
    assert "slackwater_bench.commands" not in found
    assert len(ours(found)) < 40


def test_a_command_of_another_package_is_loaded_when_it_is_called(tmp_path: Path) -> None:
    assert "slackwater_bench.simulate.commands" in loaded(tmp_path, "simulate", "--help")


WITHOUT = """
import sys
from importlib.machinery import PathFinder

def find_spec(kind, name, path=None, target=None):
    gone = name.partition(".")[0] in ("matplotlib", "psutil")
    return None if gone else usual(name, path, target)

usual, PathFinder.find_spec = PathFinder.find_spec, classmethod(find_spec)
from slackwater.cli.main import main
sys.argv = ["slackwater", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["simulate", "latency", "--report", "page"], "slackwater[report]"),
        (["bench", "gate"], "slackwater[bench]"),
    ],
)
def test_what_is_not_installed_is_one_clear_line(
    tmp_path: Path, arguments: list[str], extra: str
) -> None:
    done = run(tmp_path, WITHOUT, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("slackwater: ")
    assert done.stderr.count("\n") == 1
    assert f"pip install '{extra}'" in done.stderr


@pytest.mark.parametrize("group", ["bench", "simulate"])
def test_commands_are_listed_without_the_extras(tmp_path: Path, group: str) -> None:
    done = run(tmp_path, WITHOUT, group, "--help")
    assert done.returncode == 0, done.stderr
