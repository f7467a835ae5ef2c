"""What every manifest does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoryd.domain.files import FileKey, Problem, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Listed, Outline
from memoryd.domain.sealing import sealed
from memoryd.errors import ConflictError
from memoryd.ports import Manifest
from tests.contract.registry import MANIFESTS, Opened, opened

SCOPE = Scope("acme", "main")
NEIGHBOURS = (Scope("acme", "other"), Scope("rival", "main"))
LONG = 10.0  # a wait that ends as soon as what it waits for comes


@pytest.fixture(params=sorted(MANIFESTS))
async def held(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened[Manifest]]:
    async with opened(MANIFESTS[request.param], tmp_path) as adapter:
        yield adapter


@pytest.fixture
def manifest(held: Opened[Manifest]) -> Manifest:
    return held.now


def outline(path: str = "a.md", scope: Scope = SCOPE, sequence: int = 1, entry: int = 0) -> Outline:
    chunks = tuple(Listed(f"id {sequence} {n}", f"identity {n}", 0, n + 1, n + 1) for n in range(2))
    return Outline(FileKey(scope, path), Revision(1, sequence), f"hash {sequence}", chunks, entry=entry)


FULL = Outline(
    key=FileKey(SCOPE, "memory/日记 %_.md"),
    revision=Revision(3, 1 << 40),
    file_hash="h",
    chunks=(Listed("i", "j", 2, 3, 4), Listed("k", "l", 0, 5, 9)),
    source=Source.SESSIONS,
    private=True,
    date="2026-01-02",
    evergreen=False,
    problem=Problem("POISON", "crashed 5 times: «é»"),
    warning="front matter: «é»",
)
TOMBSTONE = Outline(FileKey(SCOPE, "gone.md"), Revision(1, 2), "", (), deleted=True)


class TestCommit:
    @pytest.mark.parametrize("kept", [FULL, TOMBSTONE, outline()], ids=["all-fields", "tombstone", "defaults"])
    async def test_an_outline_comes_back_as_it_was(self, manifest: Manifest, kept: Outline) -> None:
        committed = await manifest.commit(kept)
        assert committed.entry > 0
        assert committed == replace(kept, entry=committed.entry)
        assert await manifest.outline(kept.key) == committed
        view = await manifest.view(SCOPE)
        assert view.outlines == {kept.key.path: committed}

    async def test_an_unknown_file_has_no_outline(self, manifest: Manifest) -> None:
        assert await manifest.outline(FileKey(SCOPE, "a.md")) is None

    async def test_the_entry_is_the_base_of_the_next_commit(self, manifest: Manifest) -> None:
        first = await manifest.commit(outline())
        second = await manifest.commit(replace(first, revision=Revision(1, 2)))
        assert second.entry > first.entry
        for stale in (0, first.entry, second.entry + 1):
            with pytest.raises(ConflictError):
                await manifest.commit(outline(sequence=3, entry=stale))
        assert await manifest.outline(first.key) == second

    async def test_an_entry_of_a_file_that_has_none_is_refused(self, manifest: Manifest) -> None:
        with pytest.raises(ConflictError):
            await manifest.commit(outline(entry=1))
        assert await manifest.outline(FileKey(SCOPE, "a.md")) is None
        assert (await manifest.view(SCOPE)).sequence == 0

    @pytest.mark.parametrize("exists", [False, True])
    async def test_of_twenty_committers_one_wins(self, manifest: Manifest, exists: bool) -> None:
        entry = (await manifest.commit(outline())).entry if exists else 0
        commits = [manifest.commit(outline(sequence=10 + n, entry=entry)) for n in range(20)]
        results = await asyncio.gather(*commits, return_exceptions=True)
        (winner,) = [result for result in results if isinstance(result, Outline)]
        assert sum(isinstance(result, ConflictError) for result in results) == 19
        assert await manifest.outline(FileKey(SCOPE, "a.md")) == winner

    async def test_twenty_committers_who_try_again_all_commit(self, manifest: Manifest) -> None:
        key = FileKey(SCOPE, "a.md")

        async def add(n: int) -> None:
            while True:
                last = await manifest.outline(key) or replace(outline(), chunks=())
                try:
                    await manifest.commit(replace(last, chunks=(*last.chunks, Listed(str(n), "", 0, 1, 1))))
                except ConflictError:
                    continue
                return

        await asyncio.gather(*(add(n) for n in range(20)))
        found = await manifest.outline(key)
        assert found is not None
        assert sorted(found.by_id, key=int) == [str(n) for n in range(20)]


class TestView:
    async def test_of_an_unknown_workspace_is_empty(self, manifest: Manifest) -> None:
        view = await manifest.view(SCOPE)
        assert (view.sequence, dict(view.outlines)) == (0, {})

    async def test_is_a_snapshot_that_later_commits_do_not_change(self, manifest: Manifest) -> None:
        first = await manifest.commit(outline())
        before = await manifest.view(SCOPE)
        second = await manifest.commit(replace(first, revision=Revision(1, 2)))
        other = await manifest.commit(outline("b.md"))
        after = await manifest.view(SCOPE)
        assert dict(before.outlines) == {"a.md": first}
        assert dict(after.outlines) == {"a.md": second, "b.md": other}
        assert after.sequence > before.sequence

    async def test_can_not_be_changed(self, manifest: Manifest) -> None:
        await manifest.commit(outline())
        view = await manifest.view(SCOPE)
        with pytest.raises(TypeError):
            view.outlines["b.md"] = outline("b.md")  # type: ignore[index]  # what must not work

    async def test_equal_sequences_mean_equal_views(self, manifest: Manifest) -> None:
        await manifest.commit(outline())
        first, second = await manifest.view(SCOPE), await manifest.view(SCOPE)
        assert first == second
        await manifest.commit(outline("b.md"))
        assert (await manifest.view(SCOPE)).sequence != first.sequence

    async def test_a_refused_commit_leaves_the_sequence(self, manifest: Manifest) -> None:
        await manifest.commit(outline())
        before = await manifest.view(SCOPE)
        with pytest.raises(ConflictError):
            await manifest.commit(outline())
        assert await manifest.view(SCOPE) == before

    async def test_shows_every_commit_that_returned_before(self, manifest: Manifest) -> None:
        async def commit_and_look(n: int) -> None:
            committed = await manifest.commit(outline(f"{n}.md"))
            assert (await manifest.view(SCOPE)).outlines[f"{n}.md"] == committed

        await asyncio.gather(*(commit_and_look(n) for n in range(200)))
        assert len((await manifest.view(SCOPE)).outlines) == 200

    async def test_is_no_older_than_an_outline_that_was_read_also_of_a_cancelled_commit(
        self, manifest: Manifest
    ) -> None:
        for n in range(20):
            task = asyncio.create_task(manifest.commit(outline(f"{n}.md")))
            for _ in range(n % 4):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            found = await manifest.outline(FileKey(SCOPE, f"{n}.md"))
            assert found in (None, (await manifest.view(SCOPE)).outlines.get(f"{n}.md"))


class TestWait:
    async def test_returns_at_once_where_it_is_there(self, manifest: Manifest) -> None:
        await manifest.commit(outline())
        sequence = (await manifest.view(SCOPE)).sequence
        assert await manifest.wait(SCOPE, sequence - 1, LONG) == sequence

    async def test_a_commit_ends_it(self, manifest: Manifest) -> None:
        waiting = [asyncio.create_task(manifest.wait(SCOPE, 0, LONG)) for _ in range(3)]
        await asyncio.sleep(0)
        await manifest.commit(outline())
        sequence = (await manifest.view(SCOPE)).sequence
        assert await asyncio.gather(*waiting) == [sequence] * 3

    async def test_ends_with_its_timeout(self, manifest: Manifest) -> None:
        await manifest.commit(outline())
        sequence = (await manifest.view(SCOPE)).sequence
        for timeout in (0, 0.01):
            assert await manifest.wait(SCOPE, sequence, timeout) == sequence

    async def test_a_commit_elsewhere_does_not_end_it(self, manifest: Manifest) -> None:
        waiting = asyncio.create_task(manifest.wait(SCOPE, 0, LONG))
        for scope in NEIGHBOURS:
            await manifest.commit(outline(scope=scope))
        assert not waiting.done()
        await manifest.commit(outline())
        assert await waiting > 0


class TestScopes:
    async def test_equal_paths_of_two_scopes_are_two_outlines(self, manifest: Manifest) -> None:
        everywhere = (SCOPE, *NEIGHBOURS)
        assert list(await manifest.scopes()) == []
        for n, scope in enumerate(everywhere):
            await manifest.commit(outline(scope=scope, sequence=n + 1))
        assert sorted(await manifest.scopes()) == sorted(everywhere)
        for n, scope in enumerate(everywhere):
            found = await manifest.outline(FileKey(scope, "a.md"))
            assert found is not None
            assert (found.key.scope, found.revision) == (scope, Revision(1, n + 1))
            assert dict((await manifest.view(scope)).outlines) == {"a.md": found}

    async def test_a_commit_moves_its_own_workspace_only(self, manifest: Manifest) -> None:
        for scope in NEIGHBOURS:
            await manifest.commit(outline(scope=scope))
        before = [await manifest.view(scope) for scope in NEIGHBOURS]
        await manifest.commit(outline())
        assert [await manifest.view(scope) for scope in NEIGHBOURS] == before


class TestSealing:
    async def test_a_sealed_tombstone_has_no_path_and_is_found_by_it(self, held: Opened[Manifest]) -> None:
        manifest = held.now
        other = await manifest.commit(outline("other.md"))
        live = await manifest.commit(outline("gone.md"))
        before = await manifest.view(SCOPE)
        gone = await manifest.commit(replace(TOMBSTONE, entry=live.entry))
        await manifest.view(SCOPE)
        await manifest.seal(gone)
        for restarted in (False, True):
            manifest = await held.again() if restarted else manifest
            view = await manifest.view(SCOPE)
            assert sorted(view.outlines) == sorted(["other.md", sealed("gone.md")])
            assert view.sequence > before.sequence
            found = await manifest.outline(FileKey(SCOPE, "gone.md"))
            assert found is not None
            assert replace(found, entry=gone.entry) == gone
            assert found.entry > max(gone.entry, other.entry)

    async def test_who_knows_of_nothing_or_of_what_was_revives_nothing(self, manifest: Manifest) -> None:
        gone = await manifest.commit(TOMBSTONE)
        with pytest.raises(ConflictError):
            await manifest.seal(replace(gone, entry=gone.entry + 1))
        await manifest.seal(gone)
        for entry in (0, gone.entry):
            with pytest.raises(ConflictError):
                await manifest.commit(outline("gone.md", sequence=9, entry=entry))
        found = await manifest.outline(gone.key)
        assert found is not None
        back = await manifest.commit(outline("gone.md", sequence=9, entry=found.entry))
        assert dict((await manifest.view(SCOPE)).outlines) == {"gone.md": back}
        # A tombstone that comes by its hash, as a log gives it, is the same file's.
        later = Outline(FileKey(SCOPE, sealed("x.md")), Revision(1, 3), "", (), deleted=True)
        await manifest.commit(later)
        found = await manifest.outline(FileKey(SCOPE, "x.md"))
        assert found is not None
        assert found.revision == Revision(1, 3)


class TestRestart:
    async def test_everything_is_there_again(self, held: Opened[Manifest]) -> None:
        for kept in (FULL, TOMBSTONE, outline(), outline(scope=NEIGHBOURS[0])):
            await held.now.commit(kept)
        before = await held.now.view(SCOPE)
        manifest = await held.again()
        assert await manifest.view(SCOPE) == before
        assert sorted(await manifest.scopes()) == [SCOPE, NEIGHBOURS[0]]
        assert await manifest.outline(FULL.key) == before.outlines[FULL.key.path]

    async def test_sequence_and_entries_grow_on(self, held: Opened[Manifest]) -> None:
        first = await held.now.commit(outline())
        before = await held.now.view(SCOPE)
        manifest = await held.again()
        with pytest.raises(ConflictError):
            await manifest.commit(outline())
        second = await manifest.commit(replace(first, revision=Revision(1, 2)))
        assert second.entry > first.entry
        assert (await manifest.view(SCOPE)).sequence > before.sequence

    async def test_many_outlines(self, held: Opened[Manifest]) -> None:
        await asyncio.gather(*(held.now.commit(outline(f"memory/{n}.md")) for n in range(2_000)))
        manifest = await held.again()
        assert len((await manifest.view(SCOPE)).outlines) == 2_000
