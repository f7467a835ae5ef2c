"""The server stops in the middle and comes back: what callers see, and that all goes on by itself."""

import asyncio
from dataclasses import replace

import pytest

from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.filelog import NatsFileLog
from memoryd.adapters.nats.responder import serve_workspace
from memoryd.adapters.nats.workspace import NatsWorkspace
from memoryd.domain.files import FileKey, Revision
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Listed, Outline
from memoryd.errors import ConflictError, UnavailableError
from memoryd.ports import FolderState, WorkspaceFile
from tests.adapters.nats.deployment import LONG, PREFIX, SCOPE, Deployment, drain, put, soon, state
from tests.servers.process import free_port


class Folder:
    """A workspace that is there."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.release.set()
        self.entered = asyncio.Event()

    async def read(self, scope: Scope, path: str) -> WorkspaceFile | None:
        raise NotImplementedError

    async def state(self, scope: Scope) -> FolderState:
        return FolderState(None)

    async def sync(self, scope: Scope, timeout: float) -> int:
        self.entered.set()
        await self.release.wait()
        return 7


def outline(path: str, sequence: int = 1) -> Outline:
    return Outline(FileKey(SCOPE, path), Revision(1, sequence), "h", (Listed("i", "j", 0, 1, 2),))


async def test_no_server_is_told_with_its_address_and_without_its_password() -> None:
    port = free_port()
    with pytest.raises(UnavailableError, match=f"127.0.0.1:{port}") as failure:
        await NatsConnection.open([f"nats://user:secret@127.0.0.1:{port}"], timeout=0.5)
    assert "secret" not in str(failure.value)


async def test_the_file_log_fails_at_once_and_comes_back(deployment: Deployment) -> None:
    log = await deployment.log()
    await log.subscribe("one")
    first = await put(log, "a.md")
    (delivery,) = await log.fetch("one", limit=5, timeout=LONG)
    assert await log.pending("one", SCOPE) == 1
    waiting = asyncio.create_task(log.fetch("one", limit=1, timeout=3600))
    await asyncio.sleep(0)
    deployment.stop()
    async with asyncio.timeout(LONG):
        with pytest.raises(UnavailableError):
            await waiting
        for call in (
            log.put(state("b.md"), expected=None, live=True),
            log.get(FileKey(SCOPE, "a.md")),
            log.scopes(),
            log.subscribe("two"),
            log.fetch("one", limit=1, timeout=3600),
            log.pending("one", SCOPE),
            delivery.ack(),
            anext(log.scan(SCOPE)),
        ):
            with pytest.raises(UnavailableError):
                await call
    deployment.start()
    found = await soon(lambda: log.get(FileKey(SCOPE, "a.md")))
    assert found is not None
    assert found.revision == first
    (again,) = await log.fetch("one", limit=5, timeout=LONG)
    assert (again.file.revision, again.attempt) == (first, 2)
    assert await put(log, "b.md", live=True) > first
    assert await log.pending("one", SCOPE) == 2
    await again.ack()
    assert await drain(log) == ["b.md"]
    assert await log.pending("one", SCOPE) == 0


async def test_a_put_during_a_restart_happens_once_or_not_at_all(deployment: Deployment) -> None:
    log = await deployment.log()
    writing = asyncio.create_task(_write(log, 300))
    for _ in range(2):
        await asyncio.sleep(0.05)
        await asyncio.to_thread(deployment.stop)
        await asyncio.to_thread(deployment.start)
    revisions = await writing
    assert revisions == sorted(set(revisions))
    found = await soon(lambda: log.get(FileKey(SCOPE, "a.md")))
    assert found is not None
    assert (found.state.content, found.revision) == (str(len(revisions) - 1).encode(), revisions[-1])


async def _write(log: NatsFileLog, count: int) -> list[Revision]:
    """Put one state after another, as a workspace process does: after a failure it looks what there is."""
    revisions: list[Revision] = []
    while len(revisions) < count:
        last = await soon(lambda: log.get(FileKey(SCOPE, "a.md")))
        if last and (not revisions or last.revision != revisions[-1]):
            revisions.append(last.revision)  # its put was kept, but its answer lost
            continue
        try:
            await log.put(state("a.md", str(len(revisions))), expected=last.revision if last else None, live=False)
        except (UnavailableError, ConflictError):
            continue
    return revisions


async def test_the_manifest_fails_at_once_and_is_current_from_its_first_answer(deployment: Deployment) -> None:
    manifest, other = await deployment.manifest(), await deployment.manifest()
    first = await manifest.commit(outline("a.md"))
    before = await manifest.view(SCOPE)
    waiting = asyncio.create_task(manifest.wait(SCOPE, before.sequence, 3600))
    await asyncio.sleep(0)
    deployment.stop()
    async with asyncio.timeout(LONG):
        with pytest.raises(UnavailableError):
            await waiting
        for call in (
            manifest.view(SCOPE),
            manifest.outline(first.key),
            manifest.commit(replace(first, revision=Revision(1, 2))),
            manifest.scopes(),
            manifest.wait(SCOPE, before.sequence, 3600),
        ):
            with pytest.raises(UnavailableError):
                await call
    deployment.start()
    for n in range(20):  # whether the watch is armed again or not
        committed = await soon(lambda n=n: other.commit(outline(f"{n}.md")))  # type: ignore[misc]
        assert (await soon(lambda: manifest.view(SCOPE))).outlines[f"{n}.md"] == committed
    waiting = asyncio.create_task(manifest.wait(SCOPE, (await manifest.view(SCOPE)).sequence, LONG))
    last = await other.commit(outline("last.md"))
    assert await waiting == last.entry


async def test_a_view_reads_what_a_watch_that_stands_still_has_missed(deployment: Deployment) -> None:
    manifest, other = await deployment.manifest(), await deployment.manifest()
    await manifest.commit(outline("a.md"))
    await manifest.view(SCOPE)
    await manifest._follower.stop()  # noqa: SLF001  (as a consumer that its server has forgotten)
    committed = await other.commit(outline("b.md"))
    assert (await manifest.view(SCOPE)).outlines["b.md"] == committed


async def test_a_manifest_that_was_lost_is_empty_again(deployment: Deployment) -> None:
    manifest = await deployment.manifest()
    committed = await manifest.commit(outline("a.md"))
    assert len((await manifest.view(SCOPE)).outlines) == 1
    deployment.stop()
    deployment.lose_everything()
    deployment.start()
    assert dict((await soon(lambda: manifest.view(SCOPE))).outlines) == {}
    with pytest.raises(ConflictError):
        await manifest.commit(committed)
    again = await manifest.commit(replace(committed, entry=0))
    assert dict((await manifest.view(SCOPE)).outlines) == {"a.md": again}


async def test_a_workspace_is_asked_again_after_the_server_came_back(deployment: Deployment) -> None:
    folder = Folder()
    responder = await serve_workspace(await deployment.connect(), PREFIX, folder, [SCOPE])
    workspace = NatsWorkspace(await deployment.connect(), PREFIX, await deployment.log())
    assert await workspace.sync(SCOPE, LONG) == 7
    folder.release.clear()
    folder.entered.clear()
    waiting = asyncio.create_task(workspace.sync(SCOPE, 3600))
    await folder.entered.wait()
    deployment.stop()
    async with asyncio.timeout(LONG):
        with pytest.raises(UnavailableError):
            await waiting
        for call in (workspace.sync(SCOPE, 3600), workspace.state(SCOPE), workspace.read(SCOPE, "a.md")):
            with pytest.raises(UnavailableError):
                await call
    folder.release.set()
    deployment.start()
    for connection in deployment.connections:
        await connection.connected()
    assert await soon(lambda: workspace.sync(SCOPE, LONG)) == 7
    assert (await workspace.state(SCOPE)).problem is None
    await responder.close()
