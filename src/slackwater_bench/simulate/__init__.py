"""The papers' experiments at the papers' scale, in virtual time, and predictions for real fleets.

``fleets`` are the workloads as pipelines, ``trial`` runs one of them under one policy,
``experiments`` has one experiment a file, ``calibrate`` fits the model of micro-batches to
measurements, ``plan`` asks it how many queries, cores and drivers a fleet needs.
"""
