"""Logs for people, or with ``SLACKWATER_LOG=json`` as lines of JSON for machines."""

import json
import logging
import os
from datetime import UTC, datetime

VARIABLE = "SLACKWATER_LOG"
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """A formatter that writes one JSON object a line.

    >>> record = logging.makeLogRecord(
    ...     {"name": "slackwater.fleet", "levelname": "WARNING", "msg": "%s waits", "args": ("q",)}
    ... )
    >>> line = json.loads(JsonFormatter().format(record))
    >>> line["level"], line["logger"], line["message"]
    ('WARNING', 'slackwater.fleet', 'q waits')
    """

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        line |= {key: value for key, value in vars(record).items() if key not in _USUAL}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure(usual: logging.Handler) -> None:
    """Send warnings and worse to ``usual``, or as JSON to standard error where that is wanted."""
    handler = usual
    if os.environ.get(VARIABLE) == "json":
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
