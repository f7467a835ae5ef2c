"""Preparing: what costs processor time but needs no model, in threads of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from memoryd.domain.chunking import Chunked, Limits, chunk_markdown, chunk_transcript
from memoryd.domain.chunks import Chunk
from memoryd.domain.files import LoggedFile, Source
from memoryd.domain.outlines import Outline
from memoryd.domain.plans import Plan, plan
from memoryd.domain.text import analyze, heading_terms
from memoryd.ports import Tokenizer

T = TypeVar("T")

# A text above this is chunked in a thread of its own, beside the others.
LARGE_BYTES = 256 * 1024


class Preparer:
    """Chunks, plans and analyses, one file at a time, and one large file beside it."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits) -> None:
        self._tokenizer, self._limits = tokenizer, limits
        self._small = ThreadPoolExecutor(1, thread_name_prefix="prepare")
        self._large = ThreadPoolExecutor(1, thread_name_prefix="prepare-large")

    async def chunk(self, logged: LoggedFile) -> Chunked | None:
        """Decode and chunk a state's text; None for a deletion or a problem."""
        content = logged.state.content
        if content is None:
            return None
        cut = chunk_transcript if logged.state.source is Source.SESSIONS else chunk_markdown
        return await self._run(len(content), lambda: self._chunk(content, cut))

    async def plan(
        self, logged: LoggedFile, base: Outline | None, chunked: Chunked | None, lost: frozenset[str]
    ) -> Plan:
        """Diff a state against the current outline; `lost` is what a store does not hold of that."""
        return await self._run(len(logged.state.content or b""), lambda: plan(logged, base, chunked, lost))

    async def with_terms(self, chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
        """Analyse chunks."""
        return await self._run(0, lambda: tuple(map(_with_terms, chunks))) if chunks else ()

    def close(self) -> None:
        """Let the threads end; work that has not begun is dropped."""
        for pool in (self._small, self._large):
            pool.shutdown(wait=False, cancel_futures=True)

    def _chunk(self, content: bytes, cut: Callable[..., Chunked]) -> Chunked:
        # The workspace has decoded the file already; replacing is for what another writer of the log may put.
        return cut(content.decode(errors="replace"), count=self._tokenizer.count, limits=self._limits)

    async def _run(self, size: int, work: Callable[[], T]) -> T:
        pool = self._large if size > LARGE_BYTES else self._small
        return await asyncio.get_running_loop().run_in_executor(pool, work)


def _with_terms(chunk: Chunk) -> Chunk:
    return replace(
        chunk,
        terms=" ".join(analyze(chunk.text)),
        heading_terms=" ".join(heading_terms(chunk.breadcrumb, chunk.key.path)),
    )
