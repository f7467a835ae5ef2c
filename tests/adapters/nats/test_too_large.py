"""A file that is more than the server takes is set aside like any other that can't be indexed."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import pytest

from memoryd.domain.files import FileKey
from services.workspace.service import WorkspaceService
from services.workspace.settings import WorkspaceServiceSettings
from tests.adapters.nats.deployment import LONG, SCOPE, Deployment
from tests.servers.nats import NatsServer
from tests.servers.process import server_folder


@pytest.fixture
def server() -> Iterator[NatsServer]:
    """A server that takes little."""
    server = NatsServer(server_folder("nats"), max_payload=20_000)
    server.process.start()
    yield server
    server.process.kill()


@pytest.fixture
async def deployment(server: NatsServer) -> AsyncIterator[Deployment]:
    deployment = Deployment(server)
    yield deployment
    await deployment.close()


async def test_it_is_set_aside_and_others_are_not(deployment: Deployment, tmp_path: Path) -> None:
    log = await deployment.log()
    big = Random(1).randbytes(30_000).hex()  # noqa: S311  (no secret: it is what compression can't make fit)
    (tmp_path / "big.md").write_text(big)
    (tmp_path / "small.md").write_text("small\n")
    service = WorkspaceService({SCOPE: tmp_path}, log, WorkspaceServiceSettings())
    await service.start()
    first = await log.get(FileKey(SCOPE, "big.md"))
    assert first is not None
    assert first.state.content is None
    assert first.state.problem is not None
    assert (first.state.problem.reason, "raise its max_payload" in first.state.problem.detail) == ("TOO_LARGE", True)
    small = await log.get(FileKey(SCOPE, "small.md"))
    assert small is not None
    assert small.state.content == b"small\n"
    # Looking again puts nothing; cut short, it is taken.
    assert await service.sync(SCOPE, LONG) == 0
    (tmp_path / "big.md").write_text(big[:1000])
    assert await service.sync(SCOPE, LONG) == 1
    second = await log.get(FileKey(SCOPE, "big.md"))
    assert second is not None
    assert second.state.content == big[:1000].encode()
    await service.close()
