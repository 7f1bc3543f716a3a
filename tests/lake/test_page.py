"""What ``docs/kafka-to-delta.md`` says is done, against a broker; only jars come from a folder."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.core.clock import Deadline
from tests.lake import jars
from tests.root import ROOT
from tests.waiting import eventually

pytestmark = pytest.mark.lake

PAGE = (ROOT / "docs" / "kafka-to-delta.md").read_text()
PACKAGES = re.compile(r'(?<=")io\.delta:[^"]*(?=")')
ROWS = 6 * 3 * 5  # of all tables, when complete: topics, windows, pages
PRODUCED_S = 15.0  # of 35: then the producer stands still until the driver has been killed


def rows(table: Path) -> int:
    """Return how many rows a Delta table has, by its log: nothing is ever removed here."""
    lines = [line for log in table.glob("_delta_log/*.json") for line in log.open()]
    added = [action["add"] for action in map(json.loads, lines) if "add" in action]
    return sum(int(json.loads(file["stats"])["numRecords"]) for file in added)


def files() -> dict[str, str]:
    """Return the blocks of the page that begin with the name of a file."""
    blocks = re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
    return dict(blocks)


def test_the_page_runs(tmp_path: Path) -> None:
    why_not = jars.why_not()
    if why_not is not None:
        pytest.skip(why_not)
    pytest.importorskip("confluent_kafka")
    from slackwater_bench import kafka_broker

    missing = kafka_broker.why_missing()
    if missing is not None:
        pytest.skip(missing)
    broker = kafka_broker.KafkaBroker(tmp_path)
    folder = tmp_path / "views"
    folder.mkdir()
    ours = [jar for jar in kafka_broker.connector_jars() if "spark-sql-kafka" not in jar]
    paths = ",".join([*map(str, jars.FOLDER.glob("*.jar")), *ours])
    for name, text in files().items():
        text = text.replace("127.0.0.1:9092", broker.address)
        text = PACKAGES.sub(paths, text).replace("spark.jars.packages", "spark.jars")
        (folder / name).write_text(text)
    environment = os.environ | {"SLACKWATER_RUNTIME_DIR": str(folder)}
    begun: list[subprocess.Popen[bytes]] = []

    def begin(*command: str) -> subprocess.Popen[bytes]:
        with (folder / "log").open("ab") as log:
            begun.append(
                subprocess.Popen(
                    [sys.executable, *command],
                    cwd=folder,
                    env=environment,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        return begun[-1]

    def log() -> str:
        return (folder / "log").read_text()

    def tables() -> list[Path]:
        return sorted((folder / "tables").glob("*"))

    def versions() -> list[int]:
        return [len(list(table.glob("_delta_log/*.json"))) for table in tables()]

    try:
        producer = begin("produce.py")
        eventually(lambda: len(broker.admin.list_topics(timeout=5).topics) >= 6, limit_s=60)
        produced = Deadline(PRODUCED_S)
        fleet = begin("-m", "slackwater.cli", "run")

        def in_mid_run() -> bool:
            """However slow the machine is, what the windows need comes after the kill."""
            if produced.passed:
                os.kill(producer.pid, signal.SIGSTOP)
            return fleet.poll() is not None or sum(versions()) >= 6

        eventually(in_mid_run, limit_s=150)
        assert fleet.poll() is None, log()
        os.killpg(fleet.pid, signal.SIGKILL)  # the driver, its JVM, the controller
        fleet.wait()
        assert producer.poll() is None, "killed too late to show anything"
        assert sum(rows(table) for table in tables()) < ROWS, "killed too late to show anything"
        os.kill(producer.pid, signal.SIGCONT)
        fleet = begin("-m", "slackwater.cli", "run")
        assert producer.wait(timeout=90) == 0, log()

        def written() -> bool:
            assert fleet.poll() is None, log()
            assert " failed" not in log(), log()
            return sum(rows(table) for table in tables()) >= ROWS

        eventually(written, limit_s=150, pause_s=0.5)
        assert begin("check.py").wait(timeout=90) == 0, log()
    finally:
        for process in begun:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        broker.stop()
