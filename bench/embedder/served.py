"""An embedder in a process of its own, and the way to it."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from memoryd.adapters.grpc.embedder import GrpcEmbedder
from memoryd.adapters.grpc.remote import Remote
from memoryd.adapters.grpc.settings import ClientSettings
from memoryd.errors import MemorydError
from memoryd.server.credentials import ServiceCredentialSettings

_START_WITHIN = 300.0


@dataclass(frozen=True, slots=True)
class Served:
    """A running embedder."""

    embedder: GrpcEmbedder
    pid: int
    metrics: str

    @property
    def memory(self) -> float:
        """Resident memory now, in MiB."""
        return self._status("VmRSS")

    @property
    def peak(self) -> float:
        """Highest resident memory so far, in MiB."""
        return self._status("VmHWM")

    async def padding(self, lane: str) -> float:
        """Share of all that a lane has computed so far that was padding."""
        async with httpx.AsyncClient() as client:
            text = (await client.get(self.metrics)).raise_for_status().text
        counts = {
            sample.name: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.labels.get("lane") == lane
        }
        padding = counts["memoryd_embedder_padding_tokens_total"]
        return padding / (padding + counts["memoryd_embedder_tokens_total"])

    def _status(self, name: str) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


@asynccontextmanager
async def serving(variables: Mapping[str, str]) -> AsyncIterator[Served]:
    """Start an embedder with these variables beside those of the environment; it serves on a socket of its own."""
    token = secrets.token_urlsafe(24)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as temporary:
        address = f"unix:{Path(temporary, 'embedder.sock')}"
        given = {
            "MEMORYD_GRPC_ADDRESS": address,
            "MEMORYD_SERVICE_TOKENS": token,
            "MEMORYD_METRICS_PORT": str(port),
            "MEMORYD_LOG_LEVEL": "error",  # a line a call would be measured too
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "services.embedder", env=os.environ | given | dict(variables)
        )
        remote = Remote(
            "embedder", ClientSettings(embedder=address), ServiceCredentialSettings(tokens=(SecretStr(token),))
        )
        try:
            await _ready(remote, process)
            yield Served(await GrpcEmbedder(remote).bound(), process.pid, f"http://127.0.0.1:{port}/metrics")
        finally:
            await remote.close()
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _ready(remote: Remote, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(_START_WITHIN):
        while True:
            if process.returncode is not None:
                raise RuntimeError("the embedder ended early, see above")
            try:
                await remote.ready()
            except MemorydError:
                await asyncio.sleep(0.2)
            else:
                return
