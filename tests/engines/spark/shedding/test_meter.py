"""What a query is taken to cost, from what its micro-batches took."""

import json
from typing import Any

import pytest

from slackwater.engines.spark.shedding.meter import QualityMeter
from slackwater.engines.spark.shedding.shedders import Counted


def batch(at_s: float, rows: int, duration_s: float) -> dict[str, Any]:
    return {
        "timestamp": f"1970-01-01T00:{int(at_s) // 60:02}:{at_s % 60:06.3f}Z",
        "numInputRows": rows,
        "durationMs": {"addBatch": 1, "triggerExecution": 1000 * duration_s},
        "sources": [{"latestOffset": json.dumps({"n": 8000 * at_s, "t": round(1e6 * at_s)})}],
    }


def test_batches_that_are_kept_to_a_length_are_not_taken_to_be_all_fixed() -> None:
    meter, at_s = QualityMeter(batch_every_s=2.0), 0.0
    for _ in range(10):  # calm: small ones
        meter.take(batch(at_s, 500, 0.2), None)
        at_s += 0.5
    for n in range(100):  # as the limit holds them: fewer rows when each takes longer
        meter.take(batch(at_s, 12_000 + 1500 * (n % 4), 2.0), None)
        at_s += 2.0
    needs = meter.needs
    assert needs is not None
    assert needs.rate == pytest.approx(8000)
    assert needs.fixed + needs.rows > 1.05, "all of it would seem to fit"


def test_of_a_source_that_does_not_count_what_is_read_tells_the_rate() -> None:
    meter = QualityMeter()
    for second in range(1, 12):
        progress = batch(float(second), 150, 0.2) | {"sources": [{"latestOffset": "12"}]}
        meter.take(progress, Counted(seen=300, kept=150))
    assert meter.needs is not None
    assert meter.needs.rate == pytest.approx(300)
    assert meter.delivered == 0.5
