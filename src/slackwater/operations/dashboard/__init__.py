"""The live page of running fleets, their metrics for Prometheus, and a JSON API; on loopback only.

It asks controllers and middlewares over their Unix sockets and needs no Spark. See
docs/dashboard.md.
"""
