"""Results from sums, without Spark."""

import pyarrow as pa
import pytest

from slackwater.engines.spark.approximate.finishing import Finishing
from slackwater.sampling.aggregates import Aggregate
from slackwater.sampling.promise import Promise

ALL = {"all_n": 500.0, "all_w": 1000.0, "all_s": 1000.0, "all_d": 0.0}
USUAL = {"arrived": 1000.0, "least": 900.0, "most": 1100.0}


def finished(aggregate: str, own: dict[str, object], **changed: float) -> dict[str, object]:
    """Of one window with one group."""
    finishing = Finishing(("window",), (Aggregate.parse("x", aggregate),), Promise())
    row = {"window": {"start": 0, "end": 3}} | ALL | USUAL | own | changed
    batch = pa.RecordBatch.from_pylist([row])
    found: dict[str, object] = finishing.finish(batch).to_pylist()[0]
    return found


def test_a_count_has_its_interval_and_its_rate() -> None:
    found = finished("count()", {}, all_n=900.0, all_s=110.0)
    assert found["x"] == 1000.0
    assert found["bounded"]
    assert found["x_low"] < 1000 < found["x_high"]  # type: ignore[operator]
    assert found["sampling_rate"] == pytest.approx(0.9)


@pytest.mark.parametrize("total", [899.0, 1101.0])
def test_a_window_with_an_unusual_number_of_rows_is_marked(total: float) -> None:
    assert not finished("count()", {}, all_w=total, all_n=total, all_s=0.0)["bounded"]


def test_a_mean_of_no_values_is_none_and_promises_none() -> None:
    zeros = {f"x_n_{key}": 0.0 for key in "nwsd"} | {f"x_a_{key}": 0.0 for key in "tqspdm"}
    found = finished("mean(v)", zeros)
    assert found["x"] is None
    assert not found["bounded"]


@pytest.mark.parametrize("aggregate", ["quantile(a, 0.5)", "kmeans(a, 2)"])
def test_a_sample_without_values_is_none_or_empty_and_promises_none(aggregate: str) -> None:
    finishing = Finishing(("window",), (Aggregate.parse("x", aggregate),), Promise())
    plain = pa.RecordBatch.from_pylist([{"window": {"start": 0, "end": 3}} | ALL | USUAL])
    sample = pa.list_(pa.struct([("v0", pa.float64()), ("w", pa.float64())]))
    found = finishing.finish(plain.append_column("x", pa.array([[]], sample))).to_pylist()[0]
    assert not found["x"]
    assert not found["bounded"]
