"""Who used the machine while a figure was taken."""

import subprocess
import sys

from slackwater_bench.figures.conditions import conditions_now, watched
from tests.root import ROOT

BUSY = "import time; end = time.process_time() + 1.5\nwhile time.process_time() < end: pass"
# Its child outlives it, and is waited for by nobody: so does a JVM of PySpark.
LEAVES = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BUSY!r}])"


def test_children_that_nobody_waits_for_hide_no_later_ones() -> None:
    conditions = conditions_now(ROOT)
    with watched(conditions, outside=False):
        for code in (BUSY, LEAVES, BUSY):
            subprocess.run([sys.executable, "-c", code], check=True)
    assert conditions.took_s is not None
    assert conditions.others_share is not None
    assert 0.0 <= conditions.others_share <= 1.0
