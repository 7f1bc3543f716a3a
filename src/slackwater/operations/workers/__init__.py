"""Several Spark applications under one supervisor.

A *worker* is one Spark application that hosts queries of a fleet file. The *supervisor* starts
workers, places queries on them, moves a query when shedding alone cannot do, and places those of
a worker that died again. They talk over an authenticated channel.
"""
