"""Sources over logs: streams of rows with positions, which a server keeps and reads back.

``reader`` plans and reads micro-batches of any log; ``redis_log`` and ``kafka_log`` are the logs;
``offsets`` and ``spans`` say which rows a micro-batch has; ``texts`` and ``jsons`` make columns.
"""
