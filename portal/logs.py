"""In charge of: how log lines look, those of libraries too: one JSON object per line, or lines for people.

Not in charge of: what is logged, nor the audit log, which is rows in the database.
"""

from __future__ import annotations

from typing import Any

import structlog
from structlog.typing import Processor


def configuration(level: str, style: str) -> dict[str, Any]:
    """Sets structlog up and gives the logging.config dictionary that sends both kinds of line to standard output."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    last: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
        if style == "json"
        else [structlog.dev.ConsoleRenderer(colors=False)]
    )
    quiet = "WARNING" if level == "INFO" else level
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
            }
        },
        "handlers": {"stdout": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "line"}},
        "root": {"handlers": ["stdout"], "level": level},
        "loggers": {
            # Django's own defaults would add handlers and lines of their own.
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            "django.db.backends": {"level": "INFO"},  # never a line per statement, with its parameters
            "kubernetes": {"level": "INFO"},  # its DEBUG prints bodies and tokens
            "httpx": {"level": "WARNING"},
            # Three lines per task, every second, are too many.
            "celery.app.trace": {"level": quiet},
            "celery.beat": {"level": quiet},
            "celery.worker.strategy": {"level": quiet},
        },
    }
