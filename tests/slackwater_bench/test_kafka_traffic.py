"""Traffic over a real broker: nothing is left out, results are right, CPU is told apart."""

import json

import pyarrow as pa
import pytest

from slackwater.core import UsageError
from slackwater.traffic import Traffic
from slackwater_bench.kafka_broker import why_missing
from slackwater_bench.kafka_traffic import AHEAD_US, TopicTraffic, json_objects
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.trial import run_in_process
from slackwater_bench.workloads.ysb import Ysb

START_US = 1_700_000_000_000_000


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_event_is_due_once_when_it_arrives(partitions: int) -> None:
    traffic = Traffic(start_s=START_US / 1e6, rate="300", partitions=partitions)
    workload = Ysb(traffic=traffic)
    topic, timeline = TopicTraffic("t", workload.feed_options()), traffic.timeline()
    seen = []
    for until_us in range(START_US, START_US + 3 * AHEAD_US, 170_000):
        due = list(topic.due(until_us))
        assert all(message.arrival_us <= until_us for message in due)
        seen += due
        assert len(seen) == timeline.count(until_us)
    assert [m.arrival_us for m in seen] == sorted(m.arrival_us for m in seen)
    wanted = timeline.arrived(START_US - 1, until_us)
    assert sorted((m.partition, m.timestamp_ms) for m in seen) == sorted(
        zip(wanted.partition.tolist(), (wanted.event_us // 1000).tolist(), strict=True)
    )
    own = [m for m in seen if m.partition == 0]
    first = timeline.arrived(START_US - 1, until_us, 0).index[:1]
    columns = workload.events.columns(0, first)
    assert json.loads(own[0].value) == {name: c[0].as_py() for name, c in columns.items()}


@pytest.mark.parametrize(
    "column", [pa.array(['a"b']), pa.array(["a", None]), pa.array([[1]]), pa.array(["a\nb"])]
)
def test_what_would_be_no_json_is_refused(column: pa.Array) -> None:
    with pytest.raises(UsageError, match="ad "):
        json_objects({"ad": column})


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("policy", ["spark", "klink"])
def test_windows_over_a_broker_are_right(policy: str) -> None:
    if (missing := why_missing()) is not None:
        pytest.skip(missing)
    trial = PolicyTrial(
        policy, queries=2, seconds=4.0, warmup_s=1.0, source="kafka", rate="300", window_s=1.0
    )
    found = run_in_process(trial)
    windows = found["windows"]
    assert windows["emitted"] == windows["expected"] >= 6
    assert windows["wrong"] == 0
    assert set(found["source_cpu_s"]) == {"broker", "producer"}
    if policy == "klink":
        assert found["batches_without_rows"] == 0, "a window takes one batch"
