"""`python -m tests.chaos`: the last line tells what is wrong, and so does the exit status."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from pathlib import Path

from tests.chaos.history import replay
from tests.chaos.run import chaos


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often the indexer is killed")
    parser.add_argument("--commits", type=int, help="instead, replay a history of so many commits over 100 files")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="repeats the same changes and waits")
    arguments = parser.parse_args()
    sys.stderr.write(f"chaos: seed {arguments.seed}\n")
    with tempfile.TemporaryDirectory(prefix="memoryd-chaos-") as folder:
        if arguments.commits:
            counts = asyncio.run(replay(arguments.commits, 100, arguments.seed, Path(folder), _tell))
            sys.stdout.write(f"chaos: {arguments.commits} commits: {counts}\n")
            return 1 if counts.total else 0
        outcome = asyncio.run(chaos(arguments.kills, arguments.seed, Path(folder), _tell))
    sys.stdout.write(f"{outcome}\n")
    return 0 if outcome.is_clean else 1


def _tell(text: str) -> None:
    sys.stderr.write(f"chaos: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
