"""What can go wrong between a log and its reader."""

from slackwater.core.errors import SlackwaterError


class ServerAway(SlackwaterError):
    """The server does not answer; it may come back."""


class DataGone(SlackwaterError):
    """Rows that should be read are no longer there."""


def data_gone(name: str, what: str) -> DataGone:
    """Rows were removed before they were read."""
    return DataGone(
        f"{what} of {name} were removed before they were read (trimmed, deleted or past their "
        "retention): set fail_on_data_loss=False to go on without them"
    )
