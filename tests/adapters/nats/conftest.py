from collections.abc import AsyncIterator, Iterator

import pytest

from tests.adapters.nats.deployment import Deployment
from tests.servers.nats import NatsServer
from tests.servers.process import server_folder


@pytest.fixture
def server() -> Iterator[NatsServer]:
    """A server that the test may stop."""
    server = NatsServer(server_folder("nats"))
    server.process.start()
    yield server
    server.process.kill()


@pytest.fixture
async def deployment(server: NatsServer) -> AsyncIterator[Deployment]:
    deployment = Deployment(server)
    yield deployment
    await deployment.close()
