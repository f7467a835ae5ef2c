"""The model's window: of a query that is longer, the beginning is embedded."""

from __future__ import annotations

import asyncio
from bisect import bisect_right

from memoryd.ports import Embedder, TextKind


async def beginning(embedder: Embedder, text: str, kind: TextKind) -> str:
    """Give as much of a query, from its start, as the model's window holds: nearly always all of it."""
    window = (await embedder.info()).window
    if len(text) <= window // 4:  # counting costs time, and hardly any character is four tokens
        return text
    tokenizer = await embedder.tokenizer()

    def tokens(end: int) -> int:
        return tokenizer.count([text[:end]], kind)[0]

    def end() -> int:
        if tokens(len(text)) <= window:
            return len(text)
        return bisect_right(range(len(text)), window, key=tokens) - 1

    return text[: await asyncio.to_thread(end)]
