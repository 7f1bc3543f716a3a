"""Reports of benchmarks: one page that needs nothing else, from what ``--json`` writes."""

from slackwater.report.page import write_report

__all__ = ["write_report"]
