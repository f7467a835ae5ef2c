"""The manifest on NATS: a key-value bucket a generation, and views that are cached but never trusted unasked."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

from memoryd.adapters.nats import names
from memoryd.adapters.nats.bucket import Bucket, Entry, Extent
from memoryd.adapters.nats.codec import REVISION, outline_value, read_outline
from memoryd.adapters.nats.connection import NatsConnection
from memoryd.adapters.nats.follower import Follower
from memoryd.domain.files import FileKey, Revision
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Outline, WorkspaceView
from memoryd.domain.sealing import path_hash, sealed_key
from memoryd.errors import ConflictError

_SCOPES = 256  # workspaces whose outlines are kept in memory
_PATIENCE = 0.5  # seconds that a view waits for the copy to come up; then it reads
_LOOK_AGAIN = 5.0  # seconds after which a wait looks for itself


class _ScopeCopy:
    """The outlines of one workspace in this process, as one stream holds them."""

    def __init__(self, created: str) -> None:
        self.created = created
        self.reading = asyncio.Lock()
        self.complete = False
        self.moved = asyncio.Event()  # replaced by a new one each time
        self.sequence = 0
        self._outlines: dict[str, Outline] = {}  # by the path's hash, for its path may be sealed
        self._view: WorkspaceView | None = None

    def take(self, outline: Outline) -> None:
        """Apply an outline, unless a later one of its file is there."""
        name = path_hash(outline.key.path)
        last = self._outlines.get(name)
        if last is None or last.entry < outline.entry:
            self._outlines[name] = outline
            self.sequence = max(self.sequence, outline.entry)
            self._view = None
            self.moved.set()
            self.moved = asyncio.Event()

    def view(self) -> WorkspaceView:
        """Give a snapshot."""
        if self._view is None:
            self._view = WorkspaceView(
                self.sequence, MappingProxyType({each.key.path: each for each in self._outlines.values()})
            )
        return self._view


class NatsManifest:
    """The port `Manifest`. Several processes use it at once.

    An outline's entry is its sequence in the bucket, and a workspace's sequence is the greatest one of its outlines.
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._copies: OrderedDict[Scope, _ScopeCopy] = OrderedDict()
        self._follower = Follower(bucket, self, headers_only=False)
        self._missing = -1

    @classmethod
    async def open(cls, connection: NatsConnection, prefix: str, generation: str, *, replicas: int = 1) -> NatsManifest:
        """Open or create the manifest of a generation; its bucket's name begins with `prefix`."""
        manifest = cls(Bucket(connection, _bucket_name(prefix, generation), replicas=replicas))
        await manifest._ready()
        manifest._follower.start()
        return manifest

    @classmethod
    async def erase(cls, connection: NatsConnection, prefix: str, generation: str) -> None:
        """Remove the manifest of a generation that nobody has open; nothing where there is none."""
        await Bucket(connection, _bucket_name(prefix, generation)).remove()

    async def outline(self, key: FileKey) -> Outline | None:
        """Read a file's outline, fresh."""
        await self._ready()
        entry = await self._bucket.last(names.file_key(key))
        return None if entry is None else replace(read_outline(key.scope, entry.data, entry.sequence), key=key)

    async def commit(self, outline: Outline) -> Outline:
        """Put an outline if the entry is still `outline.entry` (0: none); returns it with its new entry.

        Raises ConflictError where another commit came first.
        """
        await self._ready()
        key, value = names.file_key(outline.key), outline_value(outline)
        headers = {REVISION: outline.revision.token}
        try:
            entry = await self._bucket.put(key, value, last=outline.entry, headers=headers)
        except ConflictError as error:
            raise ConflictError(
                f"{outline.key.path} of {outline.key.scope} was committed by another indexer meanwhile: plan again "
                "from its outline"
            ) from error
        return replace(outline, entry=entry)

    async def seal(self, outline: Outline) -> None:
        """Replace the path of a tombstone by its hash. Raises ConflictError where another commit came first."""
        await self.commit(replace(outline, key=sealed_key(outline.key)))

    async def view(self, scope: Scope) -> WorkspaceView:
        """Fix the outlines of a workspace: an immutable snapshot, current when the call began.

        The cached copy is given only where the stream's leader confirms that nothing is missing from it. Where it lags,
        after a reconnection for instance, what is missing is read directly.
        """
        return (await self._current(scope)).view()

    async def scopes(self) -> Sequence[Scope]:
        """List the workspaces that have an outline."""
        await self._ready()
        return sorted(map(names.scope_named, await self._bucket.heads(names.EVERY_FILE, names.SCOPE_PARTS)))

    async def wait(self, scope: Scope, after: int, timeout: float) -> int:
        """Wait until the workspace's sequence is greater than `after`, at most `timeout` seconds; returns it."""
        deadline = asyncio.get_running_loop().time() + timeout
        while True:
            copy = await self._current(scope)
            left = deadline - asyncio.get_running_loop().time()
            if copy.sequence > after or left <= 0:
                return copy.sequence
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, _LOOK_AGAIN)):
                    await copy.moved.wait()

    async def newest(self) -> Revision | None:
        """Read the newest revision that any outline shows, for the file log. Reads one header for every file."""
        await self._ready()
        return await _newest(self._bucket)

    @classmethod
    async def newest_in(cls, connection: NatsConnection, prefix: str, generation: str) -> Revision | None:
        """Read the newest revision of a generation that is not open here; None where it has no manifest yet."""
        bucket = Bucket(connection, _bucket_name(prefix, generation))
        return await _newest(bucket) if await bucket.exists() else None

    async def close(self) -> None:
        """Follow no more. The connection stays open."""
        await self._follower.stop()

    async def begin(self, extent: Extent) -> int:
        """Follow from now on: what was before is read when a workspace is asked for."""
        for copy in self._copies.values():
            copy.moved.set()  # who waits there looks at the new one
        self._copies.clear()
        return extent.last

    def take(self, entry: Entry) -> None:
        """Apply an outline, if its workspace is one that was asked for."""
        scope = names.scope_of(entry.key)
        if copy := self._copies.get(scope):
            copy.take(read_outline(scope, entry.data, entry.sequence))

    async def _ready(self) -> None:
        """Create the bucket, first and whenever it was found to be gone."""
        missing = self._bucket.missing
        if self._missing != missing:
            await self._bucket.ensure()
            self._missing = missing

    async def _current(self, scope: Scope) -> _ScopeCopy:
        """Give a workspace's copy, with all that was committed before the call."""
        await self._ready()
        extent = await self._bucket.extent()
        copy = self._copies.get(scope)
        if copy is None or copy.created != extent.created or copy.sequence > extent.last:
            copy = self._copies[scope] = _ScopeCopy(extent.created)
        self._copies.move_to_end(scope)
        if len(self._copies) > _SCOPES:
            self._copies.popitem(last=False)
        if copy.complete and await self._follower.reach(extent, _PATIENCE) and self._copies.get(scope) is copy:
            return copy
        async with copy.reading:
            # Once it was read whole, all up to its sequence is in it.
            after = copy.sequence if copy.complete else 0
            async for entry in self._bucket.read(f"{names.scope_key(scope)}.*", after=after):
                copy.take(read_outline(scope, entry.data, entry.sequence))
            copy.complete = True
        return copy


async def _newest(bucket: Bucket) -> Revision | None:
    newest: Revision | None = None
    async for entry in bucket.read(names.EVERY_FILE, headers_only=True):
        revision = Revision.parse(entry.headers[REVISION])
        newest = max(newest or revision, revision)
    return newest


def _bucket_name(prefix: str, generation: str) -> str:
    return names.token("bucket", f"{prefix}-manifest-{generation}")
