"""Reports of benchmarks: one page that needs nothing else, from what ``--json`` writes."""

from slackwater.bench.report.page import write_report

__all__ = ["write_report"]
