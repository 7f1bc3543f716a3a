"""Small jobs for a Flink of the tests."""

from slackwater_bench.flink import SqlClient

SOURCE = """CREATE TABLE events (id BIGINT, v DOUBLE) WITH (
    'connector' = 'datagen', 'rows-per-second' = '{rate}')"""
SINK = "CREATE TABLE results (id BIGINT, size BIGINT) WITH ('connector' = 'blackhole')"
# A random column that is filtered on and projected cannot be folded into the next projection: two
# operators between source and sink.
PIPELINE = """INSERT INTO results
SELECT id, CHAR_LENGTH(p) FROM (
    SELECT id, MD5(CONCAT(p, CAST(r AS VARCHAR))) p, RAND() r FROM (
        SELECT id, MD5(CAST(v AS VARCHAR)) p, RAND() r FROM events
    ) WHERE r < 0.5 AND r >= 0
) WHERE r < 0.8 AND r >= 0"""


def start_job(client: SqlClient, name: str, rate: int = 1000) -> str:
    return client.submit(name, [SOURCE.format(rate=rate), SINK, PIPELINE])
