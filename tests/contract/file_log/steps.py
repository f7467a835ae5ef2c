"""What the tests of a file log do with it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memoryd.domain.files import FileKey, FileState, LoggedFile, Revision
from memoryd.domain.names import Scope
from memoryd.ports import Delivery, FileLog

SCOPE = Scope("acme", "main")
NEIGHBOURS = (Scope("acme", "other"), Scope("rival", "main"))
LEASE_SECONDS = 1.0  # in the tests that wait for its end
LONG = 10.0  # a wait that ends as soon as what it waits for comes


def state(path: str = "a.md", content: str = "text\n", scope: Scope = SCOPE) -> FileState:
    data = content.encode()
    return FileState(key=FileKey(scope, path), hash=hashlib.sha256(data).hexdigest(), content=data, modified=1.5)


async def put(log: FileLog, path: str = "a.md", content: str = "text\n", *, live: bool = False) -> Revision:
    last = await log.get(FileKey(SCOPE, path))
    return await log.put(state(path, content), expected=last.revision if last else None, live=live)


async def fetch(log: FileLog, consumer: str = "one", limit: int = 10, timeout: float = LONG) -> Sequence[Delivery]:
    return await log.fetch(consumer, limit=limit, timeout=timeout)


async def scanned(log: FileLog, scope: Scope = SCOPE) -> list[LoggedFile]:
    return [file async for file in log.scan(scope)]


def paths(deliveries: Sequence[Delivery]) -> list[str]:
    return [delivery.file.state.key.path for delivery in deliveries]
