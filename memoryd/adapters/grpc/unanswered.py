"""The parts of a stream that wait for their answers, so that another replica can be asked for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator

from memoryd.errors import MemorydError

_Part = tuple[int, list[str]]


class Unanswered:
    """Parts in order, each with the index of its first text; at most `most` are sent and not answered.

    Attributes:
        error: what giving the next part raised; the parts before it are answered first.
    """

    def __init__(self, parts: Iterator[_Part], most: int) -> None:
        self.error: Exception | None = None
        self._parts, self._most = parts, most
        self._waiting: deque[_Part] = deque()
        self._room, self._began = asyncio.Event(), asyncio.Event()
        self._sent: list[int] = []

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def oldest(self) -> int:
        """How many texts the part has that the next answer is for. Raises ValueError where there is none."""
        if not self._waiting:
            raise ValueError("an answer to nothing")
        return len(self._waiting[0][1])

    def first_of(self, error: MemorydError) -> int:
        """Find the first text of the part that an error of the current stream is about."""
        request = error.details.get("request", "")
        return self._sent[int(request)] if request.isdecimal() and int(request) < len(self._sent) else 0

    def answered(self) -> None:
        """Count the oldest part as answered."""
        self._waiting.popleft()
        self._room.set()
        self._began.set()

    async def send(self) -> AsyncIterator[list[str]]:
        """Give the parts of a new stream: those not answered, then further ones as there is room.

        The second one follows only when the first is answered: what is refused of every part is refused of that, and
        gRPC (grpc.aio 1.80) may lose the reason of a refusal that meets a message on its way.
        """
        self._sent = []
        self._began = asyncio.Event()
        for first, part in tuple(self._waiting):
            self._sent.append(first)
            yield part
            await self._began.wait()
        while True:
            while len(self._waiting) >= self._most:
                self._room.clear()
                await self._room.wait()
            if self._sent:
                await self._began.wait()
            try:
                found = next(self._parts, None)
            except Exception as error:  # noqa: BLE001  (gRPC would swallow it: it is raised when the stream has ended)
                self.error = error
                return
            if found is None:
                return
            self._waiting.append(found)
            self._sent.append(found[0])
            yield found[1]
