"""Tables of a fleet file that are refreshed by runs, through the command line."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.cli.test_main import slackwater
from tests.waiting import eventually

pytestmark = pytest.mark.spark

PIPELINE = """
def table(spark, folder):
    rows = spark.readStream.schema("file int, value int").option("maxFilesPerTrigger", 1)
    return rows.json(folder)

def bad(spark):
    def fail(frame, batch):
        raise OSError("no such disk")
    return table(spark, "in/t0").writeStream.foreachBatch(fail)
"""
TABLES = 4


def land(folder: Path, number: int) -> Counter[tuple[int, int]]:
    found = Counter({(number, value): 1 for value in range(10)})
    lines = [json.dumps({"file": file, "value": value}) for file, value in found]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.json").write_text("\n".join(lines) + "\n")
    return found


def write(folder: Path, every: str, *, bad: bool = False) -> list[str]:
    """Write a project of tables; return their names."""
    names = [f"t{number}" for number in range(TABLES)]
    text = "name = 'tables'\nruns_at_once = 2\n[spark]\nmaster = 'local[2]'\n"
    for name in names:
        text += f"[queries.{name}]\nquery = 'pipeline:table'\n"
        text += f"arguments = {{ folder = 'in/{name}' }}\nformat = 'parquet'\n"
        text += f"path = 'out/{name}'\ntrigger = 'availableNow'\n{every}"
    if bad:
        text += f"[queries.bad]\nquery = 'pipeline:bad'\ntrigger = 'availableNow'\n{every}"
    (folder / "pipeline.py").write_text(PIPELINE)
    (folder / "fleet.toml").write_text(text)
    return names


def written(spark: SparkSession, folder: Path) -> Counter[tuple[int, int]]:
    rows = spark.read.schema("file int, value int").parquet(str(folder)).collect()
    return Counter((row.file, row.value) for row in rows)


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "slackwater.cli", "run", "--seconds", "120"],
        cwd=folder,
        env=os.environ | {"SLACKWATER_RUNTIME_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def committed(folder: Path, name: str) -> list[Path]:
    return list((folder / "checkpoints" / name / "commits").glob("[0-9]*"))


def test_every_table_is_refreshed_once_and_the_command_ends(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = write(tmp_path, every="")
    rows = {name: land(tmp_path / "in" / name, 0) for name in names}
    done = slackwater(tmp_path, "run", "--seconds", "120")
    assert done.returncode == 0, done.stderr + done.stdout
    for name in names:
        rows[name] += land(tmp_path / "in" / name, 1)
    done = slackwater(tmp_path, "run", "--seconds", "120")  # goes on from the checkpoints
    assert done.returncode == 0, done.stderr + done.stdout
    for name in names:
        assert written(spark, tmp_path / "out" / name) == rows[name]


def test_tables_that_are_kept_fresh_beside_one_that_fails(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = write(tmp_path, every="every = '2 seconds'\n", bad=True)
    rows = {name: land(tmp_path / "in" / name, 0) for name in names}
    running = start(tmp_path)

    def commits() -> list[int]:
        return [len(committed(tmp_path, name)) for name in names]

    try:
        eventually(lambda: min(commits()) >= 1, 90)
        for name in names:
            rows[name] += land(tmp_path / "in" / name, 1)
        eventually(lambda: min(commits()) >= 2, 90)

        def shown() -> dict[str, dict[str, object]]:
            done = slackwater(tmp_path, "status", "--json", "status.json")
            assert "every s" in done.stdout, done.stderr
            queries = json.loads((tmp_path / "status.json").read_text())["queries"]
            return {query["name"]: query for query in queries}

        eventually(lambda: bool(shown()["bad"]["failures"]), 60, 0.5)
        found = shown()
        assert found["bad"]["error"]
        assert found["bad"]["state"] in ("retrying", "running", "due")
        assert {found[name]["every_s"] for name in names} == {2.0}
        assert all(0 <= float(str(found[name]["age_s"])) < 60 for name in names)
    finally:
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=90)
    assert running.returncode == 1, out + err
    assert "bad failed" in out
    for name in names:
        assert written(spark, tmp_path / "out" / name) == rows[name]


def test_a_killed_fleet_goes_on_from_its_checkpoints(spark: SparkSession, tmp_path: Path) -> None:
    names = write(tmp_path, every="")
    rows: dict[str, Counter[tuple[int, int]]] = {name: Counter() for name in names}
    for name in names:
        for number in range(10):  # a batch each
            rows[name] += land(tmp_path / "in" / name, number)
    running = start(tmp_path)
    try:
        eventually(lambda: any(len(committed(tmp_path, name)) >= 3 for name in names), 90)
    finally:
        os.killpg(running.pid, signal.SIGKILL)  # in the middle of a run, with its JVM
        running.communicate()
    assert any(len(committed(tmp_path, name)) < 10 for name in names)
    done = slackwater(tmp_path, "run", "--seconds", "120")
    assert done.returncode == 0, done.stderr + done.stdout
    for name in names:
        assert written(spark, tmp_path / "out" / name) == rows[name]
