"""`python -m bench`: print the figures of the README as ratios to a baseline of the same run."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from bench import growth, indexing, load, search
from bench.figures import show
from memoryd.logs import LogSettings, configure


def main() -> None:
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        default=["search", "indexing"],
        help="search, indexing, load, distributed, growth, imports, busy, backlog; default: the first two",
    )
    parser.add_argument("--chunks", type=int, default=10_000, help="size of the index that is searched")
    parser.add_argument("--rounds", type=int, default=200, help="searches that are timed")
    parser.add_argument("--sections", type=int, default=300, help="sections of the folder that is indexed")
    parser.add_argument("--callers", type=int, default=50, help="load: callers at once")
    parser.add_argument("--seconds", type=float, default=60.0, help="load: how long")
    parser.add_argument("--corpus", type=Path, help="index this folder of Markdown instead of a made-up one")
    parser.add_argument(
        "--saves", type=int, default=40, help="search, distributed, busy: files that are saved and waited for"
    )
    parser.add_argument("--embed", action="store_true", help="distributed, imports: embed all, with the model")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10_000, 50_000, 200_000], help="growth: chunks in the index"
    )
    parser.add_argument("--events", type=int, default=100_000, help="backlog: file states in the queue")
    parser.add_argument("--few", type=int, default=2_000, help="backlog: file states in the queue beside it")
    parser.add_argument("--mebibytes", type=int, default=10, help="backlog: size of the large file")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    configure(LogSettings(level="warning"))
    figures = []
    if "search" in arguments.parts:
        figures += asyncio.run(search.run(arguments.chunks, arguments.rounds, arguments.saves))
    if "indexing" in arguments.parts:
        figures += asyncio.run(indexing.run(arguments.sections, arguments.corpus))
    if "growth" in arguments.parts:
        figures += asyncio.run(growth.run(arguments.sizes, arguments.rounds))
    if "load" in arguments.parts:
        figures += asyncio.run(load.run(arguments.chunks, arguments.callers, arguments.seconds))
    if "distributed" in arguments.parts:
        # The servers are in the development dependencies.
        from bench.distributed import run as distributed  # noqa: PLC0415

        figures += asyncio.run(
            distributed.run(arguments.chunks, arguments.rounds, arguments.saves, embed=arguments.embed)
        )
    if "imports" in arguments.parts:
        from bench.distributed import imports  # noqa: PLC0415  (as above)

        figures += asyncio.run(imports.run(arguments.chunks, arguments.corpus, embed=arguments.embed))
    if "busy" in arguments.parts:
        from bench import busy  # noqa: PLC0415  (as above)

        figures += asyncio.run(busy.run(arguments.chunks, arguments.saves))
    if "backlog" in arguments.parts:
        from bench.backlog.run import run as backlog  # noqa: PLC0415  (as above)

        figures += asyncio.run(backlog(arguments.events, arguments.few, arguments.mebibytes))
    show(figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
