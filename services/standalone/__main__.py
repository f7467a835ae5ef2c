"""Standalone as a process: `python -m services.standalone`, which is `memoryd serve`, set up by the environment."""

from __future__ import annotations

import sys

from rich.console import Console

from memoryd.errors import MemorydError
from memoryd.process.loop import run_loop
from services.standalone.serve import serve
from services.standalone.settings import load

if __name__ == "__main__":
    try:
        run_loop(serve(load(), Console(stderr=True, highlight=False, soft_wrap=True)))
    except MemorydError as error:
        sys.exit(f"memoryd: {error}")
