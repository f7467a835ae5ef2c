"""Logging: structlog for us, the standard library's loggers routed through it, secrets masked."""

from __future__ import annotations

import logging
import re
import sys
from typing import Literal

import structlog
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict
from structlog.typing import EventDict, Processor, WrappedLogger

_SECRET_FIELD = re.compile(r"(?:.*[_-])?(?:key|token|secret|password|authorization)", re.IGNORECASE)
_BEARER = re.compile(r"(bearer\s+)[^\s'\",)]+", re.IGNORECASE)
_MASK = "***"
# Libraries that log a line for each request that succeeds.
_CHATTY = ("opensearch",)


class LogSettings(BaseSettings):
    """Every field is also an environment variable: MEMORYD_LOG_ and its name in capitals."""

    model_config = SettingsConfigDict(env_prefix="MEMORYD_LOG_", frozen=True)

    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Least severe line kept.")
    format: Literal["auto", "json", "console"] = Field(
        default="auto", description="auto: console where standard error is a terminal, else JSON."
    )


def configure(settings: LogSettings) -> None:
    """Send all logs to standard error, one line each."""
    level = getattr(logging, settings.level.upper())
    console = settings.format == "console" or (settings.format == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Exceptions become text before secrets are masked: a traceback may quote one.
    last: list[Processor] = [structlog.processors.format_exc_info, mask_secrets]
    render: Processor = (
        structlog.dev.ConsoleRenderer() if console else structlog.processors.JSONRenderer(ensure_ascii=False)
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last, render],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def mask_secrets(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Blank texts of fields named like a secret, and bearer credentials inside any text."""
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = _MASK if _SECRET_FIELD.fullmatch(name) else _BEARER.sub(rf"\1{_MASK}", value)
    return event
