"""A Flink of our own, for tests and benchmarks: a cluster on loopback and a client for SQL.

The driver that schedules any Flink is ``slackwater.engines.outside.flink``.
"""

from slackwater.engines.flink.cluster import LocalFlink, find_flink
from slackwater.engines.flink.hosts import Host, two_nodes
from slackwater.engines.flink.sql import SqlClient

__all__ = ["Host", "LocalFlink", "SqlClient", "find_flink", "two_nodes"]
