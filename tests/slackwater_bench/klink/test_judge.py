"""Windows against the truth, the least latency they could have had, and batches for nothing."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.traffic import Traffic
from slackwater_bench.emissions import emissions, wasted
from slackwater_bench.klink.ideal import first_arrival_us
from slackwater_bench.klink.judge import Judge
from slackwater_bench.workloads.ysb import Ysb


def batch(start_s: float, ms: int, written: int, rows: int = 100, **durations: int) -> Any:
    stamp = datetime.fromtimestamp(start_s, UTC).isoformat(timespec="milliseconds")
    return {
        "timestamp": stamp.replace("+00:00", "Z"),
        "numInputRows": rows,
        "durationMs": {"addBatch": ms // 2, "triggerExecution": ms} | durations,
        "sink": {"numOutputRows": written},
    }


IDLE = {"timestamp": "1970-01-01T00:00:00.000Z", "durationMs": {"triggerExecution": 3}}


def sink(rows: list[tuple[int, str, int]]) -> pa.Table:
    """Window end, campaign and count of each row, in the order in which they were written."""
    ends, campaigns, counts = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        {
            "window_end": pa.array(ends, pa.timestamp("us")),
            "campaign_id": pa.array(campaigns, pa.string()),
            "count": pa.array(counts, pa.int64()),
        }
    )


@pytest.fixture
def ysb() -> Ysb:
    return Ysb(traffic=Traffic(start_s=0, rate="10", delays="constant:150ms"), campaigns=2)


def rows_of(ysb: Ysb, end_us: int) -> list[tuple[int, str, int]]:
    (rows,) = ysb.truth(end_us - 1, end_us).values()
    return [(end_us, *row) for row in rows.elements()]


def test_a_window_s_latency_ideal_and_rows(ysb: Ysb) -> None:
    rows = rows_of(ysb, 6_000_000)
    judge = Judge(first_s=3.0, last_s=6.0)
    # Past 6 s by the watermark's 150 ms comes the event of 6.2 s, which arrives at 6.35 s.
    trail = [batch(5, 100, 0), IDLE, batch(6.5, 300, 0), batch(7, 250, len(rows), commitOffsets=50)]
    judge.take(ysb, sink(rows), trail)
    verdict = judge.verdict()
    assert verdict["windows"] == {"expected": 1, "emitted": 1, "wrong": 0}
    assert verdict["latencies_s"] == [1.2]
    assert verdict["ideal_s"] == [0.85]  # 0.35 to arrive, 0.3 to sweep, 0.2 to emit
    assert verdict["watermark_delay_s"] == 0.15
    assert (verdict["batches"], verdict["events"], verdict["wasted"]) == (1, 100, 1)
    assert verdict["throughput_eps"] == pytest.approx(33.3)
    assert verdict["batches_without_rows"] == 0
    assert verdict["batch_s"]["with_rows"]["mean"] == pytest.approx(0.1)


def test_a_window_that_one_batch_swept_and_emitted_took_that_batch_alone(ysb: Ysb) -> None:
    rows = rows_of(ysb, 6_000_000)
    judge = Judge(first_s=3.0, last_s=6.0)
    newest = {"eventTime": {"max": "1970-01-01T00:00:05.000Z"}}
    one = batch(6.5, 300, len(rows), commitOffsets=50)
    judge.take(ysb, sink(rows), [batch(5, 100, 0) | newest, one])
    assert judge.verdict()["ideal_s"] == [0.6]  # 0.35 to arrive, 0.25 to sweep and emit


def test_rows_that_differ_and_windows_that_are_missing(ysb: Ysb) -> None:
    rows = rows_of(ysb, 6_000_000)[:-1]  # one is lost, and the window that ends at 9 s
    judge = Judge(first_s=3.0, last_s=9.0)
    judge.take(ysb, sink(rows), [batch(6.5, 300, 0), batch(7, 250, len(rows))])
    assert judge.verdict()["windows"] == {"expected": 2, "emitted": bool(rows), "wrong": bool(rows)}


def test_windows_without_rows_are_not_expected_but_wrong_if_they_come() -> None:
    quiet = Ysb(traffic=Traffic(start_s=0, stop_s=1, rate="10"), campaigns=2)
    judge = Judge(first_s=6.0, last_s=12.0)
    judge.take(quiet, sink([(9_000_000, "ghost", 1)]), [batch(10, 10, 0), batch(11, 10, 1)])
    verdict = judge.verdict()
    assert verdict["windows"] == {"expected": 1, "emitted": 1, "wrong": 1}
    assert verdict["ideal_s"] == [None]  # no event will ever sweep it


def test_nothing_at_all_is_a_verdict_too(ysb: Ysb) -> None:
    judge = Judge(first_s=3.0, last_s=6.0)
    judge.take(ysb, sink([]), [])
    assert judge.verdict()["latency_s"]["mean"] is None
    assert judge.verdict()["latencies_s"] == judge.verdict()["ideal_s"] == []


def test_under_a_source_gate_asking_for_offsets_is_waiting_not_work() -> None:
    trail = [batch(1, 300, 0, latestOffset=200), batch(2, 250, 1, latestOffset=150)]
    table = sink([(1, "a", 1)])
    columns = ("campaign_id", "count")
    assert emissions(table, columns, trail)[1].work_s == 0.55
    assert emissions(table, columns, trail, asking=False)[1].work_s == 0.2


def test_without_a_batch_before_it_a_window_has_no_known_work() -> None:
    (emission,) = emissions(sink([(1, "a", 1)]), ("count",), [batch(1, 300, 1)]).values()
    assert emission.work_s is None


def test_batches_that_led_to_nothing() -> None:
    #        wasted          sweep           emits            emits            wasted
    trail = [batch(1, 10, 0), batch(2, 10, 0), batch(3, 10, 5), batch(4, 10, 5), batch(5, 10, 0)]
    assert wasted(trail, 0.0, 10.0) == 2
    assert wasted(trail, 0.0, 4.5) == 1
    assert wasted([], 0.0, 10.0) == 0


@settings(max_examples=40, deadline=None)
@given(
    rate=st.integers(1, 400),
    delays=st.sampled_from(["uniform:0:300ms", "constant:20ms", "exponential:100ms"]),
    event_us=st.integers(0, 5_000_000),
    partitions=st.integers(1, 3),
)
def test_the_first_arrival_is_that_of_a_look_at_everything(
    rate: int, delays: str, event_us: int, partitions: int
) -> None:
    traffic = Traffic(start_s=0, rate=str(rate), delays=delays, partitions=partitions)
    timeline = traffic.timeline()
    everything = timeline.arrived(-1, 60_000_000)
    past = everything.arrival_us[everything.event_us >= event_us]
    assert first_arrival_us(timeline, event_us) == int(np.min(past))


def test_the_watermark_s_delay_is_in_whole_milliseconds_as_spark_keeps_it() -> None:
    traffic = Traffic(start_s=0, delays="uniform:0:300ms")
    assert Ysb(traffic=traffic).watermark_ms == 300
    assert Ysb(traffic=traffic, watermark_s=0.0101).watermark_ms == 11
