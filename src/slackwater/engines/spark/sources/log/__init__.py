"""Sources over logs: streams of rows with positions, which are kept and read back.

``log`` says what a log is; ``redis_log``, ``kafka_log`` and ``segment_log`` are logs; ``reader``
plans and reads micro-batches of any; ``offsets`` says which rows one has, ``columns`` makes their
columns.
"""
