"""The use cases of the gateway: what an agent may ask of its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from memoryd.domain.names import Scope
from memoryd.domain.queries import Chat, ModelInfo, SearchAnswer, SearchQuery
from memoryd.errors import MemorydError, PreconditionFailedError, refuse
from memoryd.generations.admin import GenerationStatus, statuses
from memoryd.ports import Embedder, FolderState, Generations, Indexing, IndexStatus, PartProbe, Searcher, Workspace
from services.gateway.excerpts import Excerpt, excerpt
from services.gateway.settings import GatewaySettings
from services.gateway.validation import checked_path, checked_query

DEFAULT_LINES = 120


@dataclass(frozen=True, slots=True)
class Found:
    """A search's answer; `query` is what was asked."""

    query: SearchQuery
    answer: SearchAnswer


@dataclass(frozen=True, slots=True)
class Read:
    """What memory_get is asked; the field's meanings and defaults are in memory.proto."""

    path: str
    first: int = 1
    lines: int = DEFAULT_LINES
    expected_hash: str = ""
    chat: Chat = Chat.DIRECT


@dataclass(frozen=True, slots=True)
class Content:
    """What memory_get answers; `hash` is empty where there is no such file, or none that this caller may see."""

    path: str
    first: int
    excerpt: Excerpt
    hash: str

    @property
    def found(self) -> bool:
        """Whether there is such a file."""
        return bool(self.hash)


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """The state of one workspace: what is indexed of it, and how its folder is."""

    index: IndexStatus
    folder: FolderState


@dataclass(frozen=True, slots=True)
class State:
    """The state of several workspaces and of all generations; `model` is None while the embedder does not answer."""

    workspaces: tuple[WorkspaceState, ...]
    model: ModelInfo | None
    disk_bytes: int
    version: str
    generations: tuple[GenerationStatus, ...]


@dataclass(frozen=True, slots=True)
class GatewayService:
    """Answers for scopes that the caller's key covers (`memoryd.auth`)."""

    searcher: Searcher
    indexing: Indexing
    workspace: Workspace
    embedder: Embedder
    generations: Generations
    settings: GatewaySettings

    async def search(self, scope: Scope, query: SearchQuery, *, timeout: float) -> Found:
        """Search within `timeout` seconds. Raises InvalidInputError for a field out of bounds."""
        query = checked_query(query)
        margin = min(self.settings.margin, timeout / 2)
        return Found(query, await self.searcher.search(scope, query, timeout=timeout - margin))

    async def get(self, scope: Scope, read: Read) -> Content:
        """Read lines of a file; a file that does not exist is an answer, not an error.

        Raises InvalidInputError for a path that breaks a rule, PreconditionFailedError with `current_hash` in its
        details where the file's hash is not the expected one.
        """
        path = checked_path("path", read.path)
        for field, number in (("from", read.first), ("lines", read.lines)):
            if number < 1:
                refuse(field, number, "is out of range; it must be 1 or more")
        file = await self.workspace.read(scope, path)
        if file is None or (file.private and read.chat is not Chat.DIRECT):
            return Content(path, read.first, Excerpt("", lines=0, truncated=False, next_from=None, of=0), hash="")
        if read.expected_hash and read.expected_hash.lower() != file.hash:
            raise PreconditionFailedError(
                f"{path} has changed: its hash is now {file.hash}; read it again and decide anew",
                reason="HASH_MISMATCH",
                current_hash=file.hash,
            )
        return Content(path, read.first, excerpt(file.text, read.first, read.lines), file.hash)

    async def sync(self, scope: Scope, *, timeout: float) -> tuple[int, int]:
        """Compare folders with what is indexed; returns how many files changed, and how many are pending."""
        margin = min(self.settings.margin, timeout / 2)
        return await self.indexing.sync(scope, timeout - margin)

    async def status(self, scopes: Iterable[Scope]) -> State:
        """Report on workspaces, by name."""
        return State(
            workspaces=tuple([await self._state(scope) for scope in sorted(scopes)]),
            model=await self._model(),
            disk_bytes=await self.indexing.disk_bytes(),
            version=version("memoryd"),
            generations=await self._generations(),
        )

    async def probe(self, scope: Scope, *, timeout: float) -> Sequence[PartProbe]:
        """Ask each part something small; where the indexer does not answer, that is what is told."""
        margin = min(self.settings.margin, timeout / 2)
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            return await self.indexing.probe(scope, timeout - margin)
        except MemorydError as error:
            return [PartProbe("indexer", (loop.time() - began) * 1000, error.reason, str(error))]

    async def _state(self, scope: Scope) -> WorkspaceState:
        folder = await self.workspace.state(scope)
        return WorkspaceState(await self.indexing.status(scope), folder)

    async def _model(self) -> ModelInfo | None:
        try:
            async with asyncio.timeout(self.settings.info_timeout):
                return await self.embedder.info()
        except (MemorydError, TimeoutError):
            return None

    async def _generations(self) -> tuple[GenerationStatus, ...]:
        """List the generations; none while their registry does not answer: the rest of a status is worth having."""
        try:
            async with asyncio.timeout(self.settings.info_timeout):
                return tuple(await statuses(self.generations))
        except (MemorydError, TimeoutError):
            return ()
