"""Priorities become settings of the operating system; all of them are taken back at the end.

``translators`` (one a file) turn priorities into settings and never act. ``applier`` carries
settings out and ``journal`` remembers what was there before, so that everything can be put back,
also by the next process when this one was killed.

>>> names()
['cpu-quota', 'cpu-shares', 'nice', 'real-time', 'shares-nice']
"""

from slackwater.common.plugins import Family
from slackwater.enforce.translators.base import Ranked, Translator

__all__ = ["Ranked", "Translator", "load", "names"]

_family: Family[Translator] = Family(
    "slackwater.enforce.translators",
    Translator,  # type: ignore[type-abstract]
    "translator",
)
names, load = _family.names, _family.load
