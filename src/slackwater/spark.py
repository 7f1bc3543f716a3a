"""What users of Spark import: the session profile, the fleet, the sources."""

from slackwater.engines.spark.between import read_log, write_log
from slackwater.engines.spark.feed import feed
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.kafka_source import kafka_topic
from slackwater.engines.spark.redis_source import redis_stream
from slackwater.engines.spark.session import session
from slackwater.engines.spark.shed_filter import sheddable

__all__ = [
    "Fleet",
    "feed",
    "kafka_topic",
    "read_log",
    "redis_stream",
    "session",
    "sheddable",
    "write_log",
]
