"""A purge in one process: the search forgets what it has kept of the workspace at once."""

from __future__ import annotations

from pathlib import Path

from memoryd.domain.purges import PurgeOrder
from memoryd.domain.queries import SearchQuery
from services.standalone.app import open_standalone
from services.standalone.index import index_all
from services.standalone.settings import StandaloneSettings
from services.workspace.settings import WorkspaceSettings
from tests.support.fakes import FakeEmbedder

WITHIN = 30.0


async def test_nothing_of_a_purged_file_is_kept_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "secret.md").write_text("The ferry Halcyon leaves at nine.\n")
    (folder / "bus.md").write_text("The bus Calypso leaves at one.\n")
    settings = StandaloneSettings(data_dir=tmp_path / "data", workspaces=(WorkspaceSettings(path=folder),))
    scope, query = settings.workspaces[0].scope, SearchQuery("the ferry Halcyon", min_score=0.0)
    async with open_standalone(settings, embedder=FakeEmbedder()) as standalone:
        await index_all(standalone, scope, lambda *_: None)
        answers = standalone.live.current.search.answers
        found = await standalone.search.search(scope, query, timeout=WITHIN)
        assert {result.path for result in found.results} == {"bus.md", "secret.md"}
        assert answers.size > 0
        await standalone.indexer.purge(
            PurgeOrder(scope.tenant, scope.workspace, "secret.md", block=True), timeout=WITHIN
        )
        assert answers.size == 0
        found = await standalone.search.search(scope, query, timeout=WITHIN)
        assert [result.path for result in found.results] == ["bus.md"]
