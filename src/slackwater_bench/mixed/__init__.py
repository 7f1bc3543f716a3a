"""A fleet of all kinds of queries, as teams have them, on Spark's own sources."""
