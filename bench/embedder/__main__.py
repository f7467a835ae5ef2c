"""`python -m bench.embedder`: what the embedder makes of the machine; what is wanted of it stands in the last lines."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from bench.embedder import compare, models, sections, threads
from bench.embedder.raw import Raw
from bench.embedder.served import Served, serving
from bench.embedder.texts import Corpus, queries, read_corpus
from bench.figures import Figure, show
from memoryd.logs import LogSettings, configure
from memoryd.ports import Lane
from services.embedder.settings import EmbedderSettings

SECTIONS = ("bulk", "query", "mixed", "callers", "same", "sketches", "overload", "compare")
_ASKED_FOR = ("threads",)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.embedder", description=__doc__)
    parser.add_argument(
        "sections", nargs="*", default=SECTIONS, help=f"{', '.join(SECTIONS)}; default: these; also {_ASKED_FOR[0]}"
    )
    parser.add_argument(
        "--corpus", type=Path, action="append", help="a folder of Markdown or a retrieval set; repeatable"
    )
    parser.add_argument("--tokens", type=int, default=20_000, help="of each corpus, embedded in each round")
    parser.add_argument("--rounds", type=int, default=3, help="of raw loop and gRPC in turn")
    parser.add_argument("--queries", type=int, default=100, help="that are timed alone")
    parser.add_argument("--seconds", type=float, default=20.0, help="of queries beside bulk, and of overload")
    parser.add_argument("--callers", type=int, default=200, help="at once, each with one text a call")
    parser.add_argument("--factor", type=float, default=3.0, help="of overload: how much more comes than can be served")
    parser.add_argument("--engine", action="append", help="onnx, sentence-transformers; repeatable; default: onnx")
    parser.add_argument("--infinity", type=Path, help="infinity_emb of an environment of its own, to compare with")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - {*SECTIONS, *_ASKED_FOR}:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    if arguments.infinity:
        arguments.infinity = arguments.infinity.absolute()  # it runs in another folder
    return arguments


async def _engine(arguments: argparse.Namespace, engine: str) -> list[Figure]:
    """Run the sections on one engine."""
    raw = await asyncio.to_thread(Raw, EmbedderSettings.model_validate({"engine": engine}))
    corpora = [
        await asyncio.to_thread(read_corpus, folder, raw.engine.tokenizer, raw.engine.info.window, arguments.tokens)
        for folder in arguments.corpus or [None]
    ]
    async with serving({"MEMORYD_EMBEDDER_ENGINE": engine}) as served:
        figures = [Figure(f"memory at the start, {engine}", served.memory, "MiB")]
        for section in arguments.sections:
            print(f"{engine}: {section} …", file=sys.stderr)
            found = await _section(section, arguments, served, raw, corpora, engine)
            show(found, as_json=False, file=sys.stderr)  # were a later section to fail, these are not lost
            figures += found
        most = 600.0 if engine == "onnx" else None  # what is wanted of one lane; of two it is 800
        figures.append(Figure(f"memory at its peak, {engine}, two lanes", served.peak, "MiB", at_most=most))
        share = await served.padding(Lane.BULK) * 100
        figures.append(Figure(f"padding of the bulk lane, {engine}", share, "%", at_most=10.0))
    return figures


async def _section(
    section: str, arguments: argparse.Namespace, served: Served, raw: Raw, corpora: Sequence[Corpus], engine: str
) -> list[Figure]:
    questions = queries(list(corpora), arguments.queries)
    corpus = corpora[0]

    async def bulk() -> list[Figure]:
        found = [await sections.bulk(served, raw, each, arguments.rounds, engine) for each in corpora]
        return [figure for figures in found for figure in figures]

    runs: dict[str, Callable[[], Awaitable[list[Figure]]]] = {
        "bulk": bulk,
        "query": partial(sections.query, served, raw, questions),
        "mixed": partial(sections.mixed, served, corpus, questions, arguments.seconds),
        "callers": partial(sections.callers, served, raw, corpus, arguments.callers),
        "same": partial(sections.same, served, raw, corpus),
        "sketches": partial(sections.sketches, served, corpus, arguments.rounds),
        "overload": partial(sections.overload, served, corpus, arguments.seconds, arguments.factor),
        "threads": partial(asyncio.to_thread, threads.run, arguments.queries),
        "compare": partial(compare.run, corpus, served, arguments.infinity, arguments.rounds),
    }
    return await runs[section]()


async def _run(arguments: argparse.Namespace) -> list[Figure]:
    engines = arguments.engine or ["onnx"]
    await asyncio.to_thread(models.ready, arguments.sections, engines, arguments.infinity)
    return [figure for engine in engines for figure in await _engine(arguments, engine)]


def main() -> None:
    """Run the sections that were asked for; what is wanted comes last."""
    arguments = _arguments()
    configure(LogSettings(level="error"))
    figures = asyncio.run(_run(arguments))
    show(sorted(figures, key=lambda figure: bool(figure.wanted)), as_json=arguments.json)


if __name__ == "__main__":
    main()
