"""What a fleet did, kept in a file, and what it would have done under another policy."""

from slackwater.operations.recording.record import record
from slackwater.operations.recording.recorded import Recording, load
from slackwater.operations.recording.replay import replay

__all__ = ["Recording", "load", "record", "replay"]
