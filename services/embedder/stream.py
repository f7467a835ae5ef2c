"""Any number of texts through a bounded window: parts are worked on side by side, and answered in order."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import TypeVar

from memoryd.errors import InvalidInputError, ResourceExhaustedError
from memoryd.models.parts import Limits, of_part
from memoryd.ports import Embeddings, Lane, TextKind

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

QUOTA = "PROVIDER_QUOTA"
"""Reason of what is full for hours."""
AHEAD = 4
"""Parts that are worked on at a time."""
_LIMITS = Limits(texts=256, bytes=2**31)
_PART_BYTES = 2**15  # about 8,000 tokens: a stream's parts at work are some dozens of batches
_LONGEST_WAIT = 2.0  # seconds: the queue may empty sooner than foreseen
_JITTER = random.SystemRandom()


async def in_order(
    parts: AsyncIterator[_Part], work: Callable[[_Part], Awaitable[_Result]], ahead: int
) -> AsyncGenerator[_Result]:
    """Work on at most `ahead` parts at a time; no further one is asked for before the caller took a result.

    The first error, of the parts or of the work on one, ends it after the results before it.
    """
    begun: asyncio.Queue[asyncio.Task[_Result] | None] = asyncio.Queue()
    room = asyncio.Semaphore(ahead)
    tasks: set[asyncio.Task[_Result]] = set()

    async def one(part: _Part) -> _Result:
        return await work(part)

    async def feed() -> None:
        try:
            await room.acquire()
            async for part in parts:
                task = asyncio.create_task(one(part))
                tasks.add(task)
                begun.put_nowait(task)
                await room.acquire()
        finally:
            begun.put_nowait(None)

    feeder = asyncio.create_task(feed())
    try:
        while (task := await begun.get()) is not None:
            result = await task
            tasks.discard(task)
            yield result
            room.release()
        await feeder
    finally:
        for each in (feeder, *tasks):
            each.cancel()
        await asyncio.gather(feeder, *tasks, return_exceptions=True)


async def patiently(embed: Callable[[float], Awaitable[Embeddings]], timeout: float) -> Embeddings:
    """Embed within `timeout` seconds, and wait while the queue is full. `embed` is given the seconds that are left."""
    end = time.monotonic() + timeout
    while True:
        left = end - time.monotonic()
        try:
            return await embed(left)
        except ResourceExhaustedError as full:
            wait = min(full.retry_after or _LONGEST_WAIT, _LONGEST_WAIT) * _JITTER.uniform(0.75, 1.0)
            if wait >= left or full.reason == QUOTA:
                raise
        await asyncio.sleep(wait)


class Streaming:
    """Adds `embed_stream` to an embedder of this process."""

    async def embed(
        self,
        texts: Sequence[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> Embeddings:
        """See the port."""
        raise NotImplementedError

    async def embed_stream(
        self,
        texts: Iterable[str],
        *,
        kind: TextKind,
        lane: Lane,
        timeout: float,
        sketches: bool = False,
        tenant: str = "",
    ) -> AsyncGenerator[Embeddings]:
        """Embed any number of texts; see the port."""

        async def parts() -> AsyncIterator[tuple[int, list[str]]]:
            for part in _LIMITS.parts(texts, target=_PART_BYTES):
                yield part

        async def work(part: tuple[int, list[str]]) -> Embeddings:
            first, those = part
            try:
                return await patiently(
                    lambda left: self.embed(
                        those, kind=kind, lane=lane, timeout=left, sketches=sketches, tenant=tenant
                    ),
                    timeout,
                )
            except InvalidInputError as error:
                raise of_part(error, first) from error

        async with aclosing(in_order(parts(), work, AHEAD)) as results:
            async for result in results:
                yield result
