"""What a fleet did, kept in a file, and what it would have done under another policy."""

from slackwater.recording.record import record
from slackwater.recording.replay import replay
from slackwater.recording.story import Story, load

__all__ = ["Story", "load", "record", "replay"]
