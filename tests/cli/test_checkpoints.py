"""Commands that convert checkpoints, before Spark is started for them."""

from pathlib import Path

import pytest

from slackwater.cli.checkpoints import _session
from slackwater.core.errors import UsageError
from slackwater.operations import launch


def test_a_broken_fleet_file_is_told_and_not_taken_for_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Spark would start without its credentials and say that nobody may read the bucket."""

    def start(*arguments: object) -> None:
        raise AssertionError("started")

    monkeypatch.setattr(launch, "start_session", start)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="started"), _session("s3a://bucket/q"):
        pass
    (tmp_path / "fleet.toml").write_text("[spark]\nmastre = 'local[2]'\n")
    with pytest.raises(UsageError, match="mastre"), _session("s3a://bucket/q"):
        pass
