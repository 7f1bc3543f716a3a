"""Klink on fleets of all kinds."""

from slackwater.policies.klink_paper import KlinkPaper


class Klink(KlinkPaper):
    """Klink on fleets of all kinds."""

    name = "klink"
