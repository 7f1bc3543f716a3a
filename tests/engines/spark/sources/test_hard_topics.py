"""Results over a real broker that is killed, and over topics that are not easy, row by row."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from slackwater_bench import kafka_broker
from tests.engines.spark.sources import hard_topics
from tests.engines.spark.sources.hard_topics import TOPIC_OF
from tests.root import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one fleet made of all topics: its broker was killed and started again."""
    if (missing := kafka_broker.why_missing()) is not None:
        pytest.skip(missing)
    folder = tmp_path_factory.mktemp("hard")
    done = subprocess.run(
        [sys.executable, "-m", hard_topics.__name__, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"SLACKWATER_RUNTIME_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert not told["lost"], "the test itself lost rows"
    return told


@pytest.mark.parametrize("query", TOPIC_OF)
def test_results_are_right(query: str, found: dict[str, Any]) -> None:
    assert found["windows"][query] >= 3
    assert not found["mistakes"][query]
    assert found["late_rows"][query] in (None, 0)


def test_no_query_fails_when_the_broker_is_killed(found: dict[str, Any]) -> None:
    assert (found["restarts"], found["errors"]) == ({}, {})


def test_the_broker_has_compacted_before_anybody_read(found: dict[str, Any]) -> None:
    assert found["compacted_away"] > 0


@pytest.mark.parametrize("query", TOPIC_OF)
def test_a_window_takes_one_batch_unless_transactions_hide_the_frontier(
    query: str, found: dict[str, Any]
) -> None:
    why = found["why_two_batches"][query]
    if query == "committed":
        assert "given up" in why
    else:
        assert why is None
