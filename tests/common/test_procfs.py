"""The CPU meter counts what a sampler of live processes would miss."""

import os
import subprocess
import sys
import threading
import time

from slackwater.common.procfs import CpuMeter, reaped_cpu, thread_cpu
from slackwater_bench.resources import cpu_by_group

BURN_S = 0.3
BURN = f"import time\nwhile time.process_time() < {BURN_S}: pass"
# A parent that starts the burner and stays: the burner is a grandchild of the meter's process.
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BURN!r}], check=True)
print("done", flush=True)
sys.stdin.read()
"""


def test_a_child_that_has_ended_is_counted() -> None:
    meter = CpuMeter()
    before = meter.read()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    assert meter.read() - before >= BURN_S * 0.9


def test_a_grandchild_that_its_parent_reaped_is_counted() -> None:
    meter = CpuMeter()
    before = meter.read()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "done\n"
        assert meter.read() - before >= BURN_S * 0.9
        assert reaped_cpu(parent.pid) >= BURN_S * 0.9
        assert parent.stdin is not None
        parent.stdin.close()


def test_the_reading_never_falls() -> None:
    meter = CpuMeter()
    readings = []
    for _ in range(20):
        child = subprocess.Popen([sys.executable, "-c", "pass"])
        while child.poll() is None:
            readings.append(meter.read())
        readings.append(meter.read())
    assert readings == sorted(readings)


def test_a_process_tree_that_does_not_exist_has_used_nothing() -> None:
    assert CpuMeter(root=2**22 + 1).read() == 0.0


def test_threads_are_told_apart_and_grouped() -> None:
    stop = threading.Event()

    def burn() -> None:
        while not stop.is_set():
            sum(range(1000))

    before = thread_cpu(os.getpid())
    thread = threading.Thread(target=burn)
    thread.start()
    limit = time.monotonic() + 30
    spent = 0.0
    while spent < 0.05 and time.monotonic() < limit:
        now = thread_cpu(os.getpid())
        spent = now[thread.native_id][1] if thread.native_id in now else 0.0
        time.sleep(0.01)
    after = thread_cpu(os.getpid())
    stop.set()
    thread.join()
    assert spent >= 0.05
    assert sum(cpu_by_group(before, after).values()) >= 0.05
