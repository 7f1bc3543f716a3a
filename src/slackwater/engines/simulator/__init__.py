"""An engine in virtual time, for the same controller and the same policies as real ones.

Micro-batches as Spark runs them: a fixed cost for each, cores that running batches share, results
of a window in two steps. Traffic is that of the benchmarks, event by event.
"""
