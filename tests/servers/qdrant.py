"""The Qdrant that tests use: MEMORYD_TEST_QDRANT_URL, or `tests.servers.qdrant_edge`."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import uuid
from pathlib import Path

from qdrant_client import QdrantClient

from memoryd.adapters.qdrant.settings import QdrantSettings
from memoryd.adapters.qdrant.store import QdrantVectorStore
from tests.servers.process import ServerProcess, accepts, free_port, once, server_folder

_SESSION = f"memoryd-test-{uuid.uuid4().hex[:8]}"


class QdrantServer:
    """A server of our own, in a folder."""

    def __init__(self, root: Path, *options: str) -> None:
        port = free_port()
        program = [sys.executable, "-m", "tests.servers.qdrant_edge", "--root", str(root / "collections")]
        self.url = f"http://127.0.0.1:{port}"
        self.process = ServerProcess([*program, "--port", str(port), *options], root / "log", lambda: accepts(port))


@once
def qdrant_url() -> str:
    """Give the session's server, started when it is first asked for."""
    if url := os.environ.get("MEMORYD_TEST_QDRANT_URL"):
        return url
    server = QdrantServer(server_folder("qdrant"))
    atexit.register(server.process.kill)
    server.process.start()
    return server.url


async def open_vector_store(place: Path, dimensions: int) -> QdrantVectorStore:
    """Open the store of a place; what other places of this session have left is removed."""
    collection = f"{_SESSION}-{uuid.uuid5(uuid.NAMESPACE_URL, str(place)).hex}"
    _remove_all_but(collection)
    return await QdrantVectorStore.open(QdrantSettings(url=qdrant_url()), collection, dimensions)


def _remove_all_but(kept: str) -> None:
    client = _client()
    for found in client.get_collections().collections:
        if found.name.startswith(_SESSION) and found.name != kept:
            client.delete_collection(found.name)


@functools.cache
def _client() -> QdrantClient:
    settings = QdrantSettings(url=qdrant_url())
    client = QdrantClient(
        host=settings.host, grpc_port=settings.port, https=settings.tls, prefer_grpc=True, check_compatibility=False
    )
    atexit.register(client.close)
    atexit.register(_remove_all_but, "")
    return client
