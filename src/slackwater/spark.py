"""What users of Spark import: the session profile, the fleet, the feed."""

from slackwater.engines.spark.feed import feed
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.session import session

__all__ = ["Fleet", "feed", "session"]
