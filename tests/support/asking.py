"""Asks the search service of a world of indexers, purges, and checks the answers: S1, C1, P1 and P2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from memoryd.domain.files import FileState, Revision
from memoryd.domain.names import Scope
from memoryd.domain.outlines import WorkspaceView
from memoryd.domain.purges import PurgeOrder
from memoryd.domain.queries import MAX_RESULTS, Chat, SearchAnswer, SearchQuery
from memoryd.errors import MemorydError
from memoryd.ports import Manifest, TextStore, VectorStore
from services.indexer.repair.purge import Purger
from services.indexer.settings import IndexerSettings
from services.search.service import SearchService
from services.search.settings import SearchSettings
from tests.support.fakes import FakeEmbedder

COMMON = "alpha"  # a word that every section of the tests' files holds, so that the text leg finds all of them


class _Engines(Protocol):
    manifest: Manifest
    vectors: VectorStore
    texts: TextStore


class _World(Protocol):
    """What is needed of `tests.support.indexing.World`."""

    scope: Scope
    settings: IndexerSettings
    history: dict[tuple[str, Revision], FileState]
    last: dict[str, Revision]

    @property
    def engines(self) -> _Engines: ...

    def ports(self, actor: str) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Asked:
    """What the search service answered, the outlines that it went by, and what had been purged when it began."""

    answer: SearchAnswer
    view: WorkspaceView
    chat: Chat
    purged: dict[str, Revision]


class _Noting:
    """A manifest that notes the view which it gave last."""

    def __init__(self, manifest: Any) -> None:  # noqa: ANN401  (gated)
        self._manifest = manifest
        self.noted = WorkspaceView(0)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  (whatever the port has)
        return getattr(self._manifest, name)

    async def view(self, scope: Scope) -> WorkspaceView:
        """Give it, and note it."""
        self.noted = await self._manifest.view(scope)
        return self.noted


class Asker:
    """The search service, the same one always (it keeps answers), and what was purged."""

    def __init__(self, world: _World) -> None:
        self.purged: dict[str, Revision] = {}
        self._world = world
        self._searching: tuple[SearchService, _Noting] | None = None

    async def ask(self, chat: Chat = Chat.DIRECT) -> Asked:
        """Ask the search service for all that there is."""
        purged = dict(self.purged)
        query = SearchQuery(COMMON, max_results=MAX_RESULTS, min_score=0.0, chat=chat)
        service, manifest = self._service()
        return Asked(await service.search(self._world.scope, query, timeout=1e6), manifest.noted, chat, purged)

    def _service(self) -> tuple[SearchService, _Noting]:
        """Give the search service, the same one always: it keeps answers."""
        if self._searching is None:
            ports = self._world.ports("search")
            manifest = _Noting(ports["manifest"])
            service = SearchService(
                embedder=FakeEmbedder(),
                vectors=ports["vectors"],
                texts=ports["texts"],
                manifest=cast("Manifest", manifest),
                log=ports["log"],
                consumer=self._world.settings.consumer,
                settings=SearchSettings(),
            )
            self._searching = service, manifest
        return self._searching

    async def purge(self, path: str) -> None:
        """Purge a file that was deleted, and remember it where the receipt says that it is verified."""
        ports, revision, scope = self._world.ports("purge"), self._world.last[path], self._world.scope
        purger = Purger(
            log=ports["log"],
            manifest=ports["manifest"],
            stores=(ports["vectors"], ports["texts"]),
            workspace=None,
            settings=self._world.settings,
            forget=self._service()[0].forget,
        )
        try:
            receipt = await purger.purge(PurgeOrder(scope.tenant, scope.workspace, path), timeout=60.0)
        except MemorydError:  # a call failed, or the file has come back
            return
        if receipt.verified:
            self.purged[path] = revision

    async def check_stores(self) -> None:
        """P2: no store holds what was purged; unlike in the model, not even what a file that came back lists again."""
        world = self._world
        for store in (world.engines.vectors, world.engines.texts) if self.purged else ():
            async for page in store.scan(world.scope):
                for chunk in page:
                    purged = self.purged.get(chunk.path)
                    assert purged is None or chunk.birth > purged, "P2: purged text after the receipt"

    def check(self, asked: Asked) -> None:
        """S1 and C1 of an answer: one revision a file, its lines and flags; with a grace all of it."""
        revisions: dict[str, set[Revision]] = {}
        for result in asked.answer.results:
            revisions.setdefault(result.path, set()).add(result.revision)
            shown = [
                state
                for (path, revision), state in self._world.history.items()
                if path == result.path and state.hash == result.file_hash and revision <= result.revision
            ]
            assert shown, f"S1: no revision of {result.path} was like this"
            lines = (shown[-1].content or b"").decode().split("\n")
            assert "\n".join(lines[result.start_line - 1 : result.end_line]) == result.snippet, "S1: wrong lines"
            purged = asked.purged.get(result.path)
            assert purged is None or result.revision > purged, "P1: purged text after the receipt"
            is_private = self._world.history[result.path, result.revision].private
            assert asked.chat is Chat.DIRECT or not is_private, "S1: a private file in a group"
        assert all(len(each) == 1 for each in revisions.values()), "S1: two revisions of one file"
        if asked.chat is Chat.DIRECT and not asked.answer.degraded and self._world.settings.grace:
            found = Counter((result.path, result.start_line) for result in asked.answer.results)
            listed = Counter(
                (path, each.start_line) for path, outline in asked.view.outlines.items() for each in outline.chunks
            )
            assert found == listed or listed.total() > MAX_RESULTS, "C1: not all that the outlines list was found"
