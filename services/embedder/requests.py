"""A call's texts on their way through a lane."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryd import tracing
from services.embedder.sketching import Sketch, Sketched

TokenIds = Sequence[int]


class Request:
    """One call: filled text by text from worker threads, awaited on its loop."""

    def __init__(
        self,
        ids: Sequence[TokenIds],
        dimensions: int,
        deadline: float,
        *,
        tenant: str = "",
        sketch: Sketch | None = None,
    ) -> None:
        """Begin to wait.

        Args:
            ids: token ids of each text.
            dimensions: length of a vector.
            deadline: after which nothing more is computed, on the clock of time.monotonic.
            tenant: whose texts they are: tenants share a lane fairly.
            sketch: makes of each text's token vectors what is kept of them; None where they are not wanted.
        """
        self.sketch = sketch
        self.span = tracing.here()
        self.sketches: list[Sketched | None] = [None] * len(ids)
        self.texts = [Text(self, index, each) for index, each in enumerate(ids)]
        self.tenant = tenant
        self.tokens = sum(len(each) for each in ids)
        self.created = time.monotonic()
        self.first_batch: float | None = None
        self._deadline = deadline
        self._vectors = np.full((len(ids), dimensions), np.nan, np.float32)
        self._missing = set(range(len(ids)))
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[NDArray[np.float32]] = self._loop.create_future()
        self._over = False

    @property
    def over(self) -> bool:
        """Whether nobody waits any more: expired, cancelled, failed or complete."""
        return self._over or time.monotonic() > self._deadline

    def put(self, index: int, vector: NDArray[np.float32], sketch: Sketched | None = None) -> None:
        """Keep a text's vector, and its sketch where one is wanted; the last one completes the request."""
        self._vectors[index] = vector
        self.sketches[index] = sketch
        self._missing.discard(index)  # one operation under the interpreter's lock
        if not self._missing:
            self._settle(None)

    def fail(self, error: Exception) -> None:
        """End the request with an error; without effect where it is over."""
        self._settle(error)

    def abandon(self) -> None:
        """Give up: what is still queued costs nothing."""
        self._over = True

    def so_far(self) -> NDArray[np.float32]:
        """Give the vectors that are there, and NaN in place of the others."""
        return self._vectors.copy()

    async def result(self) -> NDArray[np.float32]:
        """Wait for all vectors, shape (texts, dimensions)."""
        return await self._done

    def _settle(self, error: Exception | None) -> None:
        if self._over:
            return
        self._over = True

        def settle() -> None:
            if self._done.done():
                return
            if error is None:
                self._done.set_result(self._vectors)
            else:
                self._done.set_exception(error)

        if not self._loop.is_closed():  # else nobody waits
            self._loop.call_soon_threadsafe(settle)


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """One text of a request."""

    request: Request
    index: int
    ids: TokenIds
