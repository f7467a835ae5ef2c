"""The owner of the open generations: opens and closes their bundles as the registry says, and gives the current one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Generic, TypeVar

import structlog

from memoryd.domain.generations import Generation, GenerationState
from memoryd.errors import MemorydError, UnavailableError
from memoryd.ports import Current, Generations, Registry

P = TypeVar("P")

_LOOK_AGAIN = 5.0  # seconds after which the registry is read again, whether or not it tells of a change
_LAST_CALLS = 30.0  # seconds that calls in flight have before a generation is closed under them

_log = structlog.get_logger(__name__)


class _Held(Generic[P]):
    """An open bundle, and who uses it."""

    def __init__(self, bundle: P, stack: AsyncExitStack) -> None:
        self.bundle, self._stack = bundle, stack
        self._users = 0
        self._free = asyncio.Event()
        self._free.set()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[P]:
        """Keep it open."""
        self._users += 1
        self._free.clear()
        try:
            yield self.bundle
        finally:
            self._users -= 1
            if not self._users:
                self._free.set()

    async def close(self, patience: float) -> None:
        """Close it as soon as nobody uses it, or after `patience` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._free.wait()
        if self._users:
            _log.warning("a generation is closed while calls use it", calls=self._users)
        await self._stack.aclose()


class Live(Generic[P]):
    """The generations that are open in this process. `P` is whatever this process makes of one.

    Args:
        registry: which there are.
        open_bundle: opens one.
        current_only: open the one that answers, and no other.
    """

    def __init__(
        self,
        registry: Generations,
        open_bundle: Callable[[Generation], AbstractAsyncContextManager[P]],
        *,
        current_only: bool = False,
    ) -> None:
        self._registry, self._open, self._current_only = registry, open_bundle, current_only
        self._known = Registry(Current(), (), -1)
        self._held: dict[str, _Held[P]] = {}
        self._answering = ""
        self._lock = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def known(self) -> Registry:
        """The registry as it was read last."""
        return self._known

    @property
    def bundles(self) -> Mapping[str, P]:
        """What is open, by the generation's id."""
        return {name: held.bundle for name, held in self._held.items()}

    @property
    def busy(self) -> bool:
        """Whether a generation is still being closed."""
        return bool(self._closing)

    @property
    def current_id(self) -> str:
        """Which generation answers in this process."""
        return self._answering

    @property
    def current(self) -> P:
        """The generation that answers. Raises UnavailableError where none is open."""
        return self._current.bundle

    @property
    def coming(self) -> Generation | None:
        """The generation that is being built to answer next; None where there is none."""
        building = (each for each in self._known.generations if each.state is GenerationState.BUILDING)
        return next((each for each in building if each.id != self._answering and each.retired is None), None)

    @asynccontextmanager
    async def using(self) -> AsyncIterator[tuple[str, P]]:
        """Give the generation that answers, with its id, and keep it open meanwhile. Raises UnavailableError."""
        name = self._answering
        async with self._current.use() as bundle:
            yield name, bundle

    async def start(self) -> None:
        """Open what is to be open. Raises what opening the current generation raises."""
        await self._refresh(first=True)

    async def refresh(self) -> None:
        """Read the registry and follow it. What can't be opened now is tried again at the next time."""
        await self._refresh(first=False)

    async def run(self) -> None:
        """Follow the registry until cancelled."""
        while True:
            try:
                await self._registry.wait(self._known.sequence, _LOOK_AGAIN)
                await self.refresh()
            except MemorydError as error:
                _log.warning("the registry of generations does not answer", error=str(error))
                await asyncio.sleep(_LOOK_AGAIN / 5)

    async def close(self) -> None:
        """Close all."""
        async with self._lock:
            held, self._held, self._answering = list(self._held.values()), {}, ""
            for each in reversed(held):
                await each.close(0.0)
            if self._closing:
                await asyncio.wait(self._closing)

    @property
    def _current(self) -> _Held[P]:
        held = self._held.get(self._answering)
        if held is None:
            raise UnavailableError("no generation of the index is open yet: try again", reason="STARTING")
        return held

    async def _refresh(self, *, first: bool) -> None:
        async with self._lock:
            self._known = await self._registry.read()
            current = self._known.current.id
            wanted = {each.id: each for each in self._known.generations if self._is_wanted(each)}
            for name, generation in wanted.items():
                if name not in self._held:
                    await self._open_one(generation, must=first and name == current)
            if current in self._held and current != self._answering:
                _log.info("searches are answered by", generation=current, before=self._answering or None)
                self._answering = current
            for name in [name for name in self._held if name not in wanted and name != self._answering]:
                self._retire(name)

    def _is_wanted(self, generation: Generation) -> bool:
        if generation.id == self._known.current.id:
            return True
        return not self._current_only and generation.state is not GenerationState.DROPPING

    async def _open_one(self, generation: Generation, *, must: bool) -> None:
        stack = AsyncExitStack()
        try:
            bundle = await stack.enter_async_context(self._open(generation))
        except MemorydError as error:
            await stack.aclose()
            if must:
                raise
            _log.warning("a generation can't be opened now", generation=generation.id, error=str(error))
        else:
            self._held[generation.id] = _Held(bundle, stack)

    def _retire(self, name: str) -> None:
        """Close a bundle in the background, after the calls that use it."""
        task = asyncio.create_task(self._held.pop(name).close(_LAST_CALLS), name=f"closing generation {name}")
        self._closing.add(task)
        task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("a generation was not closed properly", part=task.get_name(), exc_info=error)
