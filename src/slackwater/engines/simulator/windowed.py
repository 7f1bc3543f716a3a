"""What simulated queries of all engines share: their windows, as discovery would find them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from slackwater.core.model import QuerySpec
from slackwater.core.windows import Deadlines, InputStream, Window, WindowKind


@dataclass(frozen=True, kw_only=True)
class WindowedQuery(ABC):
    """One query: tumbling or sliding windows over one stream."""

    name: str
    window_s: float = 3.0
    slide_s: float | None = None  # None: tumbling
    phase_s: float = 0.0  # windows start at phase + n * slide
    watermark_s: float | None = None  # None: the largest delay
    priority: float = 1.0
    max_wait_s: float = 10.0
    output_mode: str = "append"
    one_batch: bool = False  # the gate raises the watermark to what has arrived

    @property
    @abstractmethod
    def delay_s(self) -> float:
        """The delay of the watermark."""

    @property
    def window(self) -> Window:
        slide_s = self.window_s if self.slide_s is None else self.slide_s
        kind: WindowKind = "tumbling" if slide_s == self.window_s else "sliding"
        return Window(kind, self.window_s, slide_s, self.phase_s, "event_time")

    @property
    def spec(self) -> QuerySpec:
        inputs = (InputStream("simulated", "event_time", self.delay_s),)
        deadlines = Deadlines((self.window,), inputs, self.output_mode)
        return QuerySpec(
            self.name, self.priority, self.max_wait_s, deadlines, one_batch=self.one_batch
        )
