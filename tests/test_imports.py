"""What a process loads, beyond the import contracts in ``pyproject.toml``."""

import subprocess
import sys


def test_the_controller_process_needs_no_spark() -> None:
    """It starts in a fraction of a second and survives a broken Spark."""
    module = "slackwater.engines.spark.control.service"
    code = f"import {module}, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
