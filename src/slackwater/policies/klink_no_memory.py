"""Klink without memory management, to show what that brings."""

from slackwater.policies.klink import Klink


class KlinkNoMemory(Klink):
    """Least slack first, however full memory is; batches are never limited."""

    name = "klink-no-memory"
    manages_memory = False
