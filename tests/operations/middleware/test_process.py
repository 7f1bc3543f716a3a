"""The command as a process of its own: stopped, killed, restored, without rights."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slackwater.common.procfs import thread_folder, threads_of
from slackwater.core.errors import SlackwaterError
from slackwater.enforce.groups import find_groups
from slackwater.enforce.rights import has_cap_sys_nice
from tests.busy_process import Busy, idle_process
from tests.waiting import eventually

BASE = os.getpriority(os.PRIO_PROCESS, 0)
needs_nice = pytest.mark.skipif(
    not has_cap_sys_nice(), reason="lowering nice values takes CAP_SYS_NICE"
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "slackwater.cli", "middleware", *arguments]


def write_file(folder: Path, busy: Busy, translator: str = "nice", threads: str = "") -> Path:
    """Two queues, one of them long, on the busy process."""
    printed = json.dumps({"queue-size": {"long": 100, "short": 1}})
    (folder / "metrics.json").write_text(printed)
    path = folder / "middleware.toml"
    path.write_text(
        f"""name = "tests-{os.getpid()}"
[engines.e]
driver = "process"
metrics = "cat {folder / "metrics.json"}"
provides = ["queue-size"]
operators.long = {{ pid = {busy.process.pid}, threads = "{threads}" }}
operators.short = {{ pid = {os.getpid()}, threads = "never" }}
[policies.qs]
policy = "queue-size"
translator = "{translator}"
translator_parameters = {{ best = -20, worst = -10 }}
period = 0.2
"""
    )
    return path


@contextmanager
def running(folder: Path, file: Path, *more: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        command(str(file), *more),
        env={**os.environ, "SLACKWATER_RUNTIME_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def call(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*arguments),
        env={**os.environ, "SLACKWATER_RUNTIME_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def values(busy: Busy) -> set[int]:
    found = set()
    for thread in threads_of(busy.process.pid):
        found.add(os.getpriority(os.PRIO_PROCESS, thread.tid))
    return found


@needs_nice
def test_stopped_it_puts_everything_back(tmp_path: Path) -> None:
    with idle_process(2) as busy:
        file = write_file(tmp_path, busy)
        with running(tmp_path, file) as process:
            eventually(lambda: values(busy) != {BASE})
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
            assert values(busy) == {BASE}


@needs_nice
@pytest.mark.parametrize("how", ["--restore", "next start"])
def test_killed_it_is_put_back_by(tmp_path: Path, how: str) -> None:
    translator = "nice"
    try:
        find_groups("x")
        translator = "shares-nice"
    except SlackwaterError:
        pass
    with idle_process(2) as busy:
        file = write_file(tmp_path, busy, translator)
        place = Path(f"/proc/{busy.process.pid}/cgroup").read_text()
        with running(tmp_path, file) as process:
            eventually(lambda: values(busy) != {BASE})
            process.kill()
            process.wait()
        busy.offspring()
        assert values(busy) != {BASE}
        if how == "--restore":
            done = call(tmp_path, str(file), "--restore")
            assert done.returncode == 0
            assert "put back" in done.stdout
        else:
            with running(tmp_path, file) as process:
                assert process.stdout is not None
                assert "an earlier middleware left" in process.stdout.readline()
                eventually(lambda: values(busy) != {BASE})
                process.send_signal(signal.SIGINT)
                assert process.wait(20) == 0
        assert values(busy) == {BASE}
        assert Path(f"/proc/{busy.process.pid}/cgroup").read_text() == place
        for thread in threads_of(busy.process.pid):
            assert (thread_folder(thread) / "cgroup").read_text() == place
        assert "nothing was left" in call(tmp_path, "--restore").stdout


@needs_nice
def test_it_is_asked_and_switched_while_it_runs(tmp_path: Path) -> None:
    with idle_process(2) as busy:
        file = write_file(tmp_path, busy)
        with running(tmp_path, file):
            eventually(lambda: values(busy) != {BASE})
            assert call(tmp_path, str(file), "--switch", "qs=off").returncode == 0
            eventually(lambda: values(busy) == {BASE})
            told = json.loads(call(tmp_path, "--status").stdout)
            off = {"active": False, "switched": False, "settings": 0, "plan": []}
            assert told["policies"]["qs"] == off
            wrong = call(tmp_path, str(file), "--switch", "sq=on")
            assert wrong.returncode == 2
            assert "no policy named 'sq'; these are: qs" in wrong.stderr
            held = call(tmp_path, "--restore")
            assert held.returncode == 1
            assert "nothing was left" not in held.stdout
            second = call(tmp_path, str(file))
            assert second.returncode == 2
            assert "a middleware runs already" in second.stderr


def test_a_dry_run_prints_the_plan(tmp_path: Path) -> None:
    with idle_process(2) as busy:
        plan = tmp_path / "plan.json"
        done = call(tmp_path, str(write_file(tmp_path, busy)), "--dry-run", "--json", str(plan))
        found = json.loads(plan.read_text())["policies"]["qs"]
        assert f"qs (active): {len(found['plan'])} settings" in done.stdout
        assert f"of process {busy.process.pid}: nice" in done.stdout
        assert values(busy) == {BASE}


@pytest.mark.skipif(os.getuid() != 0, reason="takes root to become somebody without rights")
def test_without_rights_it_goes_on_and_says_what_it_could_not_do() -> None:
    with idle_process(2) as busy, tempfile.TemporaryDirectory() as open_to_all:
        folder = Path(open_to_all)
        folder.chmod(0o777)
        file = write_file(folder, busy)
        code = (
            "import os, sys; import slackwater.cli.main, slackwater.operations.middleware.command;"
            "import slackwater.policies.queue_size, slackwater.enforce.translators.nice;"
            "import slackwater.engines.outside.process, slackwater.operations.middleware.loop;"
            "import rich.progress, socket;"
            f"sys.argv = ['x', 'middleware', {str(file)!r}, '--seconds', '1'];"
            "os.setgid(65534); os.setuid(65534); slackwater.cli.main.main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "SLACKWATER_RUNTIME_DIR": open_to_all},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert "belongs to another user" in done.stdout, done.stderr
        assert values(busy) == {BASE}


@needs_nice
def test_its_own_cpu_is_told(tmp_path: Path) -> None:
    with idle_process(2) as busy:
        out = tmp_path / "status.json"
        file = write_file(tmp_path, busy)
        with running(tmp_path, file, "--seconds", "1", "--json", str(out)) as process:
            assert process.wait(30) == 0
        assert json.loads(out.read_text())["cpu_share"] > 0
