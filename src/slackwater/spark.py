"""What users of Spark import: the session profile, the fleet, the sources."""

from slackwater.engines.spark.connect import ConnectFleet
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.session.session import session
from slackwater.engines.spark.shedding.filter import sheddable
from slackwater.engines.spark.sources.feed import feed
from slackwater.engines.spark.sources.kafka import kafka_topic
from slackwater.engines.spark.sources.newest import observe_newest
from slackwater.engines.spark.sources.query_log import read_log, write_log
from slackwater.engines.spark.sources.redis import redis_stream
from slackwater.engines.spark.sources.spark_kafka import KafkaRecord, kafka_frontier

__all__ = [
    "ConnectFleet",
    "Fleet",
    "KafkaRecord",
    "feed",
    "kafka_frontier",
    "kafka_topic",
    "observe_newest",
    "read_log",
    "redis_stream",
    "session",
    "sheddable",
    "write_log",
]
