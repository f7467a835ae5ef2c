"""Environment variables that no setting reads: mostly mistyped names, which would silently leave a default in place."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping

import structlog
from pydantic_settings import BaseSettings

PLAIN = frozenset(
    {
        "MEMORYD_CA",
        "MEMORYD_CLIENT_INDEXER",
        "MEMORYD_DATA_DIR",
        "MEMORYD_KEY",
        "MEMORYD_MODEL_DIR",
        "MEMORYD_NATS_URL",
        "MEMORYD_SERVER",
    }
)
"""Variables that the command line and the client read by themselves."""

# How like a known name an unknown one must be to be taken for it (`difflib`'s ratio).
_LIKE = 0.9

_log = structlog.get_logger(__name__)


def known_variables(kind: type[BaseSettings]) -> Iterator[str]:
    """Iterate over the variables that a settings class and its sections read."""
    prefix = kind.model_config.get("env_prefix", "")
    for name, field in kind.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseSettings):
            yield from known_variables(section)
        else:
            yield f"{prefix}{name}".upper()


def mistyped(environ: Mapping[str, str], *kinds: type[BaseSettings]) -> dict[str, str]:
    """Find variables that look like ones of the classes, or plain ones, but are not: each with the known name nearest.

    Variables of other services are none: processes of one deployment may share one environment.
    """
    known = PLAIN.union(*map(known_variables, kinds))
    found = {}
    for name in sorted(set(environ) - known):
        if name.startswith("MEMORYD_") and (near := difflib.get_close_matches(name, known, 1, _LIKE)):
            found[name] = near[0]
    return found


def warn_of_mistyped(*kinds: type[BaseSettings]) -> None:
    """Log a warning for each mistyped variable of this process; its value may be a secret and is left out."""
    for name, near in mistyped(os.environ, *kinds).items():
        _log.warning("no setting has this name: it is ignored", variable=name, did_you_mean=near)
