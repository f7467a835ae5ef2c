"""What a workspace on another machine is while that machine is off, or fails."""

import asyncio

import pytest

from memoryd.adapters.nats.responder import Responder, serve_workspace
from memoryd.adapters.nats.workspace import NatsWorkspace
from memoryd.domain.files import FileKey, FileState, Problem
from memoryd.domain.names import Scope
from memoryd.errors import DeadlineExceededError, PreconditionFailedError, ResourceExhaustedError, UnavailableError
from memoryd.ports import FolderState, WorkspaceFile
from tests.adapters.nats.deployment import LONG, PREFIX, SCOPE, Deployment, put


class Folder:
    """A workspace that does what the test wants."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.released = asyncio.Event()

    async def read(self, scope: Scope, path: str) -> WorkspaceFile | None:
        raise NotImplementedError

    async def state(self, scope: Scope) -> FolderState:
        return FolderState(Problem("ROOT_MISSING", "the folder does not exist"), 12.5)

    async def sync(self, scope: Scope, timeout: float) -> int:
        if self.failure:
            raise self.failure
        await self.released.wait()
        return 3


async def open_workspace(deployment: Deployment, folder: Folder) -> tuple[NatsWorkspace, Responder]:
    responder = await serve_workspace(await deployment.connect(), PREFIX, folder, [SCOPE])
    return NatsWorkspace(await deployment.connect(), PREFIX, await deployment.log()), responder


async def test_with_its_machine_off_it_is_read_and_its_problem_is_told(deployment: Deployment) -> None:
    workspace, responder = await open_workspace(deployment, Folder())
    log = await deployment.log()
    await put(log, "a.md", "text\n")
    await log.put(FileState.deletion(FileKey(SCOPE, "gone.md"), 1.0), expected=None, live=False)
    await responder.close()
    assert await workspace.read(SCOPE, "a.md") == WorkspaceFile("text\n", "hash of text\n", private=False)
    assert await workspace.read(SCOPE, "gone.md") is None
    assert await workspace.read(SCOPE, "never.md") is None
    problem = (await workspace.state(SCOPE)).problem
    assert problem is not None
    assert problem.reason == "UNREACHABLE"
    with pytest.raises(UnavailableError, match="acme/main") as failure:
        await workspace.sync(SCOPE, LONG)
    assert failure.value.reason == "UNREACHABLE"


async def test_a_look_does_not_wait_for_a_comparison(deployment: Deployment) -> None:
    folder = Folder()
    workspace, responder = await open_workspace(deployment, folder)
    comparing = asyncio.create_task(workspace.sync(SCOPE, LONG))
    await asyncio.sleep(0)
    assert await workspace.state(SCOPE) == FolderState(Problem("ROOT_MISSING", "the folder does not exist"), 12.5)
    folder.released.set()
    assert await comparing == 3
    await responder.close()


async def test_who_does_not_answer_in_time_is_not_waited_for(deployment: Deployment) -> None:
    workspace, responder = await open_workspace(deployment, Folder())
    with pytest.raises(DeadlineExceededError, match="acme/main"):
        await workspace.sync(SCOPE, 0.05)
    await responder.close()


async def test_errors_come_through(deployment: Deployment) -> None:
    failure = PreconditionFailedError("the folder is not the one it was", reason="REPLACED")
    workspace, responder = await open_workspace(deployment, Folder(failure))
    with pytest.raises(PreconditionFailedError, match="not the one it was") as seen:
        await workspace.sync(SCOPE, LONG)
    assert seen.value.reason == "REPLACED"
    await responder.close()


async def test_a_crash_is_answered_and_its_text_stays_there(deployment: Deployment) -> None:
    workspace, responder = await open_workspace(deployment, Folder(RuntimeError("internals")))
    with pytest.raises(UnavailableError, match="see its log") as seen:
        await workspace.sync(SCOPE, LONG)
    assert "internals" not in str(seen.value)
    await responder.close()


async def test_too_many_requests_at_once_are_refused(deployment: Deployment) -> None:
    folder = Folder()
    workspace, responder = await open_workspace(deployment, folder)
    asking = [asyncio.create_task(workspace.sync(SCOPE, LONG)) for _ in range(40)]
    while not any(task.done() for task in asking):
        await asyncio.sleep(0.01)
    folder.released.set()
    results = await asyncio.gather(*asking, return_exceptions=True)
    assert set(map(type, results)) == {int, ResourceExhaustedError}
    assert results.count(3) == 32
    await responder.close()
