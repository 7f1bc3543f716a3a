"""Where a worker locks a query."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from slackwater.operations.workers import worker
from slackwater.operations.workers.worker import LOCK, Worker


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_path_of_another_file_system_is_locked_by_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """On a cluster whose default is HDFS a path is there, and no folder is made here."""
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    prefix = "hdfs://name" if elsewhere else ""
    monkeypatch.setattr(worker, "address_of", lambda place, spark: f"{prefix}{place}")
    one = object.__new__(Worker)
    one._launch = SimpleNamespace(checkpoint=lambda name: f"{tmp_path}/data/{name}")  # type: ignore[assignment]
    found = one._lock_file("q", None)  # type: ignore[arg-type]
    if elsewhere:
        assert found.is_relative_to(tmp_path / "run")
        assert not (tmp_path / "data").exists()
    else:
        assert found == tmp_path / "data" / "q" / LOCK
