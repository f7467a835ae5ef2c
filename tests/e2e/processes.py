"""memoryd as a user runs it: processes of the command line, on a data directory of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from memoryd.client import MemorydClient
from memoryd.endpoint import read_endpoint
from tests.support.model import model_dir

MEMORYD = Path(sys.executable).with_name("memoryd")
WITHIN = 60.0


def environment(data: Path) -> dict[str, str]:
    """The environment of a process: this one's, without its settings of memoryd."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORYD_")}
    return kept | {"MEMORYD_DATA_DIR": str(data), "MEMORYD_EMBEDDER_MODEL_DIR": str(model_dir()), "NO_COLOR": "1"}


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int
    out: str
    err: str


async def command(data: Path, *arguments: str | Path, **variables: str) -> Ended:
    """Run the command line to its end."""
    process = await asyncio.create_subprocess_exec(
        MEMORYD, *map(str, arguments), env=environment(data) | variables, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(WITHIN):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@dataclass
class Served:
    """A running `memoryd serve`."""

    process: Process
    client: MemorydClient
    address: str

    async def end(self, number: signal.Signals) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        async with asyncio.timeout(WITHIN):
            return await self.process.wait()


@asynccontextmanager
async def serve(
    data: Path, *folders: Path, log: Path | None = None, variables: Mapping[str, str] | None = None
) -> AsyncIterator[Served]:
    """Run `memoryd serve` on a free port until the context ends."""
    (data / "endpoint.json").unlink(missing_ok=True)
    with (log or data.with_suffix(".log")).open("ab") as sink:
        process = await asyncio.create_subprocess_exec(
            MEMORYD,
            "serve",
            *map(str, folders),
            "--address",
            "127.0.0.1:0",
            env=environment(data) | dict(variables or {}),
            stdout=sink,
            stderr=sink,
        )
    try:
        end = asyncio.get_running_loop().time() + WITHIN
        while (endpoint := read_endpoint(data)) is None:
            assert process.returncode is None, (log or data.with_suffix(".log")).read_text()
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.05)
        async with MemorydClient(endpoint.address, endpoint.key, timeout=30.0) as client:
            yield Served(process, client, endpoint.address)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
