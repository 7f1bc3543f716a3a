"""What a process loads, beyond the import contracts in ``pyproject.toml``."""

import subprocess
import sys


def test_the_controller_process_needs_no_spark() -> None:
    """It starts in a fraction of a second and survives a broken Spark."""
    module = "slackwater.engines.spark.control.service"
    code = f"import {module}, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_asking_a_running_fleet_loads_little() -> None:
    """So that ``slackwater off`` answers at once."""
    allowed = {"slackwater", "slackwater.core", "slackwater.ipc"}
    code = (
        "import slackwater.ipc.client, sys\n"
        "ours = {n for n in sys.modules if n.split('.')[0] == 'slackwater'}\n"
        f"other = {{n for n in ours if '.'.join(n.split('.')[:2]) not in {allowed}}}\n"
        "heavy = {'numpy', 'pyspark', 'pydantic', 'typer', 'rich'} & sys.modules.keys()\n"
        "sys.exit(', '.join(other | heavy) or 0)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True
    )
    assert (found.returncode, found.stderr) == (0, "")
