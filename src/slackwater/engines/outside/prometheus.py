"""The text format of Prometheus, as far as it is needed here."""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Sample(NamedTuple):
    """One line of the exposition format."""

    name: str
    labels: dict[str, str]
    value: float


def samples(text: str, wanted: frozenset[str]) -> Iterator[Sample]:
    """Yield the samples of the metrics wanted.

    Other lines are not even taken apart, nor are values kept that are no numbers.

    >>> list(samples('# HELP x\\nx{a="1",b="2",} 3.0\\ny 4\\nz NaN', frozenset({"x", "z"})))
    [Sample(name='x', labels={'a': '1', 'b': '2'}, value=3.0)]
    """
    for line in text.splitlines():
        name, _, rest = line.partition("{")
        if name not in wanted:
            name, _, value = line.partition(" ")
            if name not in wanted:
                continue
            labels = ""
        else:
            labels, _, value = rest.rpartition("}")
        number = float(value)
        if math.isfinite(number):
            yield Sample(name, dict(_LABEL.findall(labels)), number)
