"""Every table of figures in the documentation: its command, its result file, its place in a page.

``python -m slackwater_bench.figures`` runs what is missing and writes the pages (``make figures``).
"""
