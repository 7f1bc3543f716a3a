"""What a fleet did, kept in a file, and what it would have done under another policy."""

from slackwater.operations.recording.record import record
from slackwater.operations.recording.replay import replay
from slackwater.operations.recording.story import Story, load

__all__ = ["Story", "load", "record", "replay"]
