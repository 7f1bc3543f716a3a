"""What runs the queries of a trial."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from slackwater_bench.kafka_traffic import KafkaTraffic
from slackwater_bench.versus.ad_views import AdViews
from slackwater_bench.versus.trial import VersusTrial


class Engine(ABC):
    """Starts with the ``with`` block and ends with it, queries first.

    Its processes are children of this one.

    Parameters
    ----------
    trial
        What to run.
    folder
        Where checkpoints go.
    """

    def __init__(self, trial: VersusTrial, folder: Path) -> None:
        self.trial, self.folder = trial, folder

    @abstractmethod
    def start(self, workloads: Mapping[str, AdViews], topics: KafkaTraffic) -> None:
        """Start the queries; each reads the topic of its name."""

    @abstractmethod
    def check(self) -> None:
        """Raise an error if a query has failed."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
