"""A small mixed fleet on real Spark: every kind is measured, and every result is right."""

import pytest

from slackwater_bench.mixed.comparison import table
from slackwater_bench.mixed.trial import MixedTrial
from slackwater_bench.trial import run_in_process

pytestmark = pytest.mark.spark


def test_a_small_fleet_is_measured_and_right() -> None:
    trial = MixedTrial("klink", seconds=15.0, warmup_s=5.0, scale=0.5, sinks=1, idle=1, slow=1)
    found = run_in_process(trial)
    assert found["mistakes"] == {}
    assert found["failures"] == {}
    kinds = found["kinds"]
    assert kinds["windows of 10 s"]["seconds"]["mean"] > kinds["windows of 10 s"]["source_s"] - 0.1
    assert kinds["windows of 10 s"]["missing"] == 0
    for name in ("dashboards (update)", "stateless to parquet", "slow sink"):
        assert kinds[name]["seconds"]["mean"] > 0
        assert 0 <= kinds[name]["kept"] <= 1
        assert kinds[name]["target_s"] >= 2
    assert kinds["windows of 10 s"]["kept"] is None
    assert kinds["silent"]["batches"] == 0
    assert found["queries"] == found["alive"] == sum(kind["queries"] for kind in kinds.values())
    assert 0 < found["controller_share"] < found["python_share"] < 1
    for sample in found["samples"]:
        for part in ("driver", "python", "controller"):
            assert sample[f"{part}_rss_bytes"] > 1e6
            assert sample[f"{part}_files"] >= 3
    assert found["growth_percent"].keys() == found["samples"][0].keys() - {
        "t_s", "cpu_cores", "heap_used_bytes", "heap_max_bytes"
    }  # fmt: skip
    assert all(size > 1e6 for size in found["heap_collected_bytes"])
    assert 0 < found["controller_cpu_s"] < found["python_cpu_s"] < found["cpu_s"]
    grid = table({"runs": [found | {"policy": "klink", "repeat": 0}]})  # type: ignore[arg-type]
    assert grid.row_count > len(kinds)
