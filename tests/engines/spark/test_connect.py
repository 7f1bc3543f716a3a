"""A fleet over Spark Connect: server, controller and client are processes of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.core.errors import UsageError
from slackwater.core.windows import InputStream, Window
from slackwater.engines.spark.connect import ConnectFleet
from slackwater.ipc.client import ask
from slackwater.ipc.questions import AskStatus, QueryEntry, Status
from tests.engines.spark.connect_processes import Client, ControllerCommand, Server
from tests.versions.files import committed_rows, truth, write_files
from tests.versions.test_contract import NEVER
from tests.waiting import eventually

pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'slackwater[connect]'")
pytestmark = pytest.mark.spark

FILES = 8


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("c")) as running:
        yield running


def entry(controller: ControllerCommand) -> QueryEntry | None:
    queries = ask(controller.socket, AskStatus(), Status).queries
    return queries[0] if queries else None


def is_held(controller: ControllerCommand) -> bool:
    found = entry(controller)
    return found is not None and found.phase == "waiting"


def test_a_query_is_held_until_nobody_holds_it(server: Server, tmp_path: Path) -> None:
    """Not even its first batch runs; a killed controller opens the gate, with all results."""
    source, output = write_files(tmp_path / "in", FILES), tmp_path / "out"
    with (
        ControllerCommand(tmp_path, "never", NEVER) as controller,
        Client(tmp_path, server, "never", source, output) as client,
    ):
        eventually(lambda: client.is_running() and is_held(controller), limit_s=90)
        assert not committed_rows(output / "rows")
        controller.kill()
        eventually(
            lambda: client.is_running() and committed_rows(output / "rows") == truth(FILES),
            limit_s=90,
        )


def test_klink_admits_it_by_its_windows(server: Server, tmp_path: Path) -> None:
    source, output = write_files(tmp_path / "in", FILES), tmp_path / "out"
    with (
        ControllerCommand(tmp_path, "ads", "klink") as controller,
        Client(tmp_path, server, "ads", source, output) as client,
    ):
        eventually(
            lambda: client.is_running() and committed_rows(output / "rows") == truth(FILES),
            limit_s=90,
        )
        found = entry(controller)
        assert found is not None
        spec = found.spec.spec()
        assert spec.priority == 2
        assert spec.deadlines.windows == (Window("tumbling", 2.0, 2.0, 0.0, "time"),)
        assert spec.deadlines.inputs == (InputStream(f"FileSource[{source}]", "time", 0.0),)
        assert found.admissions >= FILES
        assert found.metrics.batches >= FILES  # Connect's listener has told of them
        assert found.metrics.rows > 0
        assert client.end() == 0, client.log()
        said = client.log()
        assert "classic: this is a session of Spark Connect: use" in said
        assert said.count("no clock gate") == 1
        assert "fleet ads: policy klink" in said
        assert "decision: ads: " in said
        assert "active: 0" in said
        eventually(lambda: entry(controller) is None)  # it is gone; the controller goes on
        assert controller.interrupt() == 0


def test_without_a_controller_it_says_so(server: Server, tmp_path: Path) -> None:
    with Client(tmp_path, server, "nobody", tmp_path, tmp_path) as client:
        assert client.end() == 1
    *_, last = client.log().splitlines()
    assert last.startswith("error: no controller answers at ")
    assert last.endswith("slackwater controller nobody")


def test_a_classic_session_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match=r"use slackwater\.spark\.Fleet"):
        ConnectFleet(spark, "ads")
