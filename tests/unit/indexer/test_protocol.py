"""S1, S2, S3 and L1 under any interleaving, on ports in memory."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tests.support.indexing import Engines
from tests.support.protocol_machine import check_protocol


async def _in_memory(_stack: AsyncExitStack) -> Engines:
    return Engines.in_memory()


def test_protocol() -> None:
    check_protocol(_in_memory, examples=100, steps=40)
