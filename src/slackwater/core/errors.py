"""The errors a user may see: one line each, saying what is wrong and what to do next."""


class SlackwaterError(Exception):
    """A failure that Slackwater understands. The command line prints it and exits with 1."""

    exit_status = 1


class UsageError(SlackwaterError):
    """Wrong usage or configuration. The command line prints it and exits with 2."""

    exit_status = 2


class EngineError(SlackwaterError):
    """The engine answered in a way that cannot be worked around."""
