"""What commands print: results on standard output, all else on standard error, JSON where asked."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from memoryd.errors import (
    ConfigError,
    InvalidInputError,
    MemorydError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
    UnimplementedError,
)

# A pipe has no width: tables go into it whole, for what reads them there.
_PIPE = 10_000

out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _PIPE)
err = Console(stderr=True, highlight=False, soft_wrap=True)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Server = Annotated[
    str | None,
    typer.Option(help="Address of the gateway, HOST:PORT; default: the local server's. The key is MEMORYD_KEY."),
]

_EXIT: dict[type, int] = {
    ConfigError: 2,
    InvalidInputError: 2,
    UnimplementedError: 2,
    UnavailableError: 3,
    UnauthenticatedError: 4,
    PermissionDeniedError: 4,
}

# What else may be behind an error of a kind: a setting that is right, but not now.
_REASONS = {"NO_SERVER": 3, "NO_KEY": 4, "DATA_DIRECTORY_LOCKED": 1, "ADDRESS_UNUSABLE": 1}


def print_json(value: Any) -> None:  # noqa: ANN401  (whatever JSON can hold)
    """Print one JSON value on a line of its own."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


def fail(error: MemorydError) -> int:
    """Print an error as one line; the exit code."""
    err.print(f"memoryd: {error}", style="red", markup=False)
    return _REASONS.get(error.reason) or next((_EXIT[kind] for kind in type(error).__mro__ if kind in _EXIT), 1)
