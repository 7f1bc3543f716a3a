"""A Flink of our own, for tests and benchmarks: a cluster on loopback and a client for SQL.

The driver that schedules any Flink is ``slackwater.engines.outside.flink``.
"""

from slackwater_bench.flink.cluster import LocalFlink, find_flink, kafka_connector
from slackwater_bench.flink.hosts import Host, two_nodes
from slackwater_bench.flink.sql import SqlClient

__all__ = ["Host", "LocalFlink", "SqlClient", "find_flink", "kafka_connector", "two_nodes"]
