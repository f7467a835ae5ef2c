"""A way to a server that a test can make slow, broken or impassable, while it is in use."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from enum import Enum, auto

from tests.servers.process import free_port

_PIECE = 1 << 16
_SLOW_SECONDS = 5.0


class Way(Enum):
    """What happens to connections, those that are open included."""

    CLEAR = auto()
    CLOSED = auto()  # none are accepted, and open ones end
    SLOW = auto()  # what the server says arrives five seconds later
    GARBAGE = auto()  # instead of what the server says, random bytes arrive


class Proxy:
    """Listens on a port of 127.0.0.1 and passes on to another; runs in a thread of its own."""

    def __init__(self, target: int) -> None:
        """Take the server's port."""
        self.port = free_port()
        self.target = target
        self._way = Way.CLEAR
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()
        self._run(self._listen())

    def stop(self) -> None:
        """End all connections, and the thread."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def become(self, way: Way) -> None:
        """Change what happens from now on."""
        self._run(self._become(way))

    def _run(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()  # type: ignore[arg-type]  # a coroutine

    async def _become(self, way: Way) -> None:
        before, self._way = self._way, way
        if way is Way.CLOSED:
            await self._close()
        elif before is Way.CLOSED:
            await self._listen()
        elif way is Way.CLEAR:  # who waits for a slow answer, or read garbage, begins anew
            self._cut()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _cut(self) -> None:
        for writer in self._connections:
            writer.transport.abort()
        self._connections.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError):
                await self._pass(reader, writer)
        finally:
            self._tasks.discard(task)
            self._connections.discard(writer)
            writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self.target)
        self._connections |= {writer, to_server}
        try:
            async with asyncio.TaskGroup() as group:
                forth = group.create_task(self._copy(reader, to_server))
                back = group.create_task(self._answer(from_server, writer))
                await asyncio.wait({forth, back}, return_when=asyncio.FIRST_COMPLETED)
                forth.cancel()
                back.cancel()
        except* OSError:
            pass
        finally:
            self._connections.discard(to_server)
            to_server.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_PIECE):
            if self._way is Way.SLOW:
                await asyncio.sleep(_SLOW_SECONDS)
            writer.write(os.urandom(len(data)) if self._way is Way.GARBAGE else data)
            await writer.drain()
