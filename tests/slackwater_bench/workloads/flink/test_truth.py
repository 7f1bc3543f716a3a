"""Every workload in SQL gives the rows that its truth says, on a real Flink."""

import re
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from slackwater.core.errors import EngineError, UsageError
from slackwater.engines.outside.http import Endpoint
from slackwater_bench.flink import LocalFlink, SqlClient, find_flink
from slackwater_bench.workloads.flink_sql import (
    etl_statements,
    flink_query,
    linear_road_statements,
    synthetic_statements,
)
from slackwater_bench.workloads.riot_etl import RiotEtl
from slackwater_bench.workloads.road_reports import RoadReports
from slackwater_bench.workloads.synthetic import Synthetic
from tests.waiting import eventually

pytestmark = [pytest.mark.flink, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def flink() -> Iterator[LocalFlink]:
    try:
        find_flink()
    except UsageError as error:
        pytest.skip(str(error))
    with LocalFlink(slots=4) as running:
        yield running


@pytest.fixture(scope="module")
def client(flink: LocalFlink) -> Iterator[SqlClient]:
    with SqlClient(flink.rest) as running:
        yield running


def printed(
    flink: LocalFlink, client: SqlClient, name: str, statements: list[str]
) -> list[list[str]]:
    """Run to the end; the fields of every row that was printed meanwhile."""
    before = flink.printed.stat().st_size
    job = client.submit(name, statements)
    endpoint = Endpoint(flink.rest)

    def finished() -> bool:
        try:
            state = endpoint.json(f"/jobs/{job}")["state"]
        except EngineError:
            return False
        assert state not in ("FAILED", "CANCELED")
        return bool(state == "FINISHED")

    eventually(finished, limit_s=120, pause_s=0.2)
    time.sleep(0.1)
    text = flink.printed.read_bytes()[before:].decode()
    return [row.split(", ") for row in re.findall(r"^\+I\[(.*)\]$", text, re.MULTILINE)]


def test_synthetic(flink: LocalFlink, client: SqlClient) -> None:
    query = Synthetic(number=2, work=2)
    rows = printed(flink, client, query.name, synthetic_statements(query, 5000, rows=2000))
    assert sorted(int(row[0]) for row in rows) == query.passing(np.arange(2000)).tolist()


def test_etl(flink: LocalFlink, client: SqlClient) -> None:
    query = RiotEtl(seed=5)
    rows = printed(flink, client, query.name, etl_statements(query, 5000, rows=2000))
    found = Counter((int(n), int(s), round(float(v), 4), zone) for n, s, v, zone in rows)
    assert found == Counter(query.truth(np.arange(2000)))


def test_linear_road(flink: LocalFlink, client: SqlClient) -> None:
    query = RoadReports(seed=2)
    rows = printed(flink, client, query.name, linear_road_statements(query, 20_000, rows=20_000))
    found = Counter((int(w), int(seg), int(toll)) for w, seg, toll in rows)
    assert found == query.truth(np.arange(20_000))
    assert found, "a road without tolls shows nothing"


def test_every_operator_has_a_thread_of_its_own(flink: LocalFlink, client: SqlClient) -> None:
    """The planner must not fold the operators of a pipeline into one."""
    endpoint = Endpoint(flink.rest)
    for name, statements, operators in [
        ("s", synthetic_statements(Synthetic(), 5000, rows=10), 6),
        ("e", etl_statements(RiotEtl(), 5000, rows=10), 6),
    ]:
        job = client.submit(name, statements)
        vertices = endpoint.json(f"/jobs/{job}")["vertices"]
        assert len(vertices) >= operators + 1, [vertex["name"] for vertex in vertices]


def test_what_is_not_written_for_flink_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match="voip-stream is not written for Flink"):
        flink_query("voip-stream", 0, 1, 1, 1)
