"""What of a heap counts as used."""

from slackwater.engines.spark.gates.heap import lasting_bytes


class Usage:
    def __init__(self, used: int) -> None:
        self._used = used

    def getUsed(self) -> int:
        return self._used


class Pool:
    def __init__(self, used: int, collected: int | None) -> None:
        self._used, self._collected = used, collected

    def getUsage(self) -> Usage:
        return Usage(self._used)

    def getCollectionUsage(self) -> Usage | None:
        return None if self._collected is None else Usage(self._collected)


def test_garbage_is_not_counted() -> None:
    assert lasting_bytes(Pool(used=900, collected=200)) == 200


def test_all_counts_until_something_was_collected() -> None:
    assert lasting_bytes(Pool(used=900, collected=0)) == 900
    assert lasting_bytes(Pool(used=900, collected=None)) == 900
