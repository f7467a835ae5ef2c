"""Purging: what is gone from a folder, or blocked, is removed from the log and both stores, and proof is given.

The log's last state becomes a deletion or a block, which holds no text; its outline lists nothing, and stays, so that a
late writer revives nothing. An older state's writer may still be at work until its lease is over: what it leaves was
born earlier, so nobody sees it, and it is erased by the call that comes after that time, the one that can be verified.
When that holds for all generations, the paths are taken out, too (`memoryd.domain.sealing`).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from memoryd.domain.files import FileKey, FileState, LoggedFile
from memoryd.domain.names import Scope
from memoryd.domain.plans import BLOCKED
from memoryd.domain.purges import PurgedFile, PurgeOrder, PurgeReceipt
from memoryd.domain.sealing import find, is_sealed
from memoryd.errors import ConflictError, MemorydError, NotFoundError, PreconditionFailedError
from memoryd.ports import ChunkStore, FileLog, Manifest, Workspace
from memoryd.ports.workspace import UNREACHABLE
from services.indexer.repair.mend import blocked_state
from services.indexer.settings import IndexerSettings

STILL_THERE, STILL_SERVED = "STILL_THERE", "STILL_SERVED"
# A write ends with its lease. This much longer, for clocks that differ and for a call that is just running.
_PATIENCE = 1.2
_ATTEMPTS = 5
_AGAIN = 1.0
_LOOK_AGAIN = 0.5
_BATCH = 1_000
_LEFT = "a file that has come back, or a store that still has some"


class Purger:
    """Purges what one generation holds."""

    def __init__(
        self,
        *,
        log: FileLog,
        manifest: Manifest,
        stores: Sequence[ChunkStore],
        workspace: Workspace | None,
        settings: IndexerSettings,
        forget: Callable[[Scope], None],
    ) -> None:
        """Take the ports. `forget` drops what is cached of a workspace's texts, when some are purged."""
        self._log, self._manifest, self._stores = log, manifest, stores
        self._workspace, self._settings, self._forget = workspace, settings, forget

    async def purge(self, order: PurgeOrder, timeout: float) -> PurgeReceipt:
        """See `Maintenance.purge`."""
        try:
            async with asyncio.timeout(timeout):
                return await self._purge(order)
        except TimeoutError:
            return PurgeReceipt((), verified=False, again_in=_AGAIN, waits_for="the indexer, which is busy")

    async def unblock(self, key: FileKey, timeout: float) -> bool:
        """Put a deletion in place of a block, and wait for its tombstone: only that takes the block off the outline."""
        async with asyncio.timeout(timeout):
            logged = await self._log.get(key)
            if logged is None:
                return False
            blocked = _is_blocked(logged)
            if blocked:
                revision = await self._log.put(_deletion(key), expected=logged.revision, live=True)
                logged = LoggedFile(_deletion(key), revision)
            if logged.state.deleted:
                await self._committed(key.scope, {key.path: logged})
            return blocked

    async def seal_outlines(self, keys: Iterable[FileKey]) -> bool:
        """Take the paths out of the outlines of files that are gone; False where one was committed meanwhile."""
        for key in keys:
            outline = await self._manifest.outline(key)
            if outline is not None and outline.deleted:
                try:
                    await self._manifest.seal(outline)
                except ConflictError:
                    return False
        return True

    async def seal_log(self, keys: Iterable[FileKey]) -> bool:
        """Take the paths of files that are gone out of the log, after all outlines; False where one came back."""
        for key in keys:
            logged = await self._log.get(key)
            if logged is not None and logged.state.deleted:
                try:
                    await self._log.seal(logged)
                except ConflictError:
                    return False
        return True

    async def _purge(self, order: PurgeOrder) -> PurgeReceipt:
        scopes = [Scope(order.tenant, order.workspace)] if order.workspace else await self._of(order.tenant)
        if not order.path:
            for scope in scopes:
                await self._refuse_served(scope)
        files: list[PurgedFile] = []
        put, clean, known = 0.0, True, False
        for scope in scopes:
            ended = await self._end(scope, order)
            outlines = (await self._manifest.view(scope)).outlines
            known = known or bool(ended) or (not order.path and any(map(is_sealed, outlines)))
            await self._committed(scope, ended)
            self._forget(scope)
            files += await self._erase(scope, ended, order.path or None)
            put = max([put, *(logged.state.modified for logged in ended.values())])
            clean = clean and await self._is_clean(scope, ended, order.path or None)
        if not known:
            raise NotFoundError(f"nothing is known of {_name(order)}: nothing to purge")
        left = put + self._settings.lease * _PATIENCE - time.time()
        if left > 0:
            waits_for = "the time until which an indexer could still be writing an older state"
            return PurgeReceipt(tuple(files), verified=False, again_in=left, waits_for=waits_for)
        if not clean:
            return PurgeReceipt(tuple(files), verified=False, again_in=_AGAIN, waits_for=_LEFT)
        return PurgeReceipt(tuple(files), verified=True)

    async def _of(self, tenant: str) -> list[Scope]:
        known = {*await self._log.scopes(), *await self._manifest.scopes()}
        return sorted(scope for scope in known if scope.tenant == tenant)

    async def _refuse_served(self, scope: Scope) -> None:
        if self._workspace is None:
            return
        try:
            problem = (await self._workspace.state(scope)).problem
        except NotFoundError:
            return
        if problem is None or problem.reason != UNREACHABLE:
            raise PreconditionFailedError(
                f"{scope} is still served, so its files would be put again: take its folder out of the configuration "
                "of the process that serves it, restart that, then purge again",
                reason=STILL_SERVED,
            )

    async def _end(self, scope: Scope, order: PurgeOrder) -> dict[str, LoggedFile]:
        """Put the last state of each file, which holds no text; returns them by path."""
        if order.path:
            logged = await self._end_file(FileKey(scope, order.path), order)
            return {} if logged is None else {order.path: logged}
        paths = {file.state.key.path async for file in self._log.scan(scope)}
        paths.update((await self._manifest.view(scope)).outlines)
        for store in self._stores:
            async for page in store.scan(scope):
                paths.update(chunk.path for chunk in page)
        plain = sorted(path for path in paths if not is_sealed(path))
        ended = {path: await self._put_end(FileKey(scope, path), _deletion, keep_block=False) for path in plain}
        return {path: logged for path, logged in ended.items() if logged is not None}

    async def _end_file(self, key: FileKey, order: PurgeOrder) -> LoggedFile | None:
        if order.block:
            return await self._put_end(key, blocked_state, keep_block=True)
        for _ in range(_ATTEMPTS):
            logged = await self._log.get(key)
            if logged is not None and (logged.state.deleted or _is_blocked(logged)):
                return logged
            if logged is not None:
                await self._refuse_present(key)  # else its owner has just put the deletion
            elif await self._manifest.outline(key) is None:
                return None
            else:  # the log was lost; nothing that its owner puts meanwhile is overwritten
                with suppress(ConflictError):
                    await self._log.put(_deletion(key), expected=None, live=True)
        raise ConflictError(f"{key.path} of {key.scope} is being put again and again: stop its owner, then purge again")

    async def _refuse_present(self, key: FileKey) -> None:
        """Raise PreconditionFailedError unless the file's owner finds that it is gone."""
        if self._workspace is not None:
            with suppress(MemorydError):  # it can't be asked: what it said last counts
                await self._workspace.sync(key.scope, self._settings.sync_timeout)
        logged = await self._log.get(key)
        if logged is not None and not logged.state.deleted:
            raise PreconditionFailedError(
                f"{key.path} is still in its folder, so it would be put again: delete it there, or block it",
                reason=STILL_THERE,
            )

    async def _put_end(
        self, key: FileKey, state_of: Callable[[FileKey], FileState], *, keep_block: bool
    ) -> LoggedFile | None:
        """Put a last state unless there is one."""
        state = state_of(key)
        for _ in range(_ATTEMPTS):
            logged = await self._log.get(key)
            if logged is not None and (_is_blocked(logged) if state.problem or keep_block else False):
                return logged
            if logged is not None and logged.state.deleted and state.deleted:
                return logged
            try:
                revision = await self._log.put(state, expected=logged.revision if logged else None, live=True)
            except ConflictError:
                continue  # its owner was faster: look again
            return LoggedFile(state, revision)
        raise ConflictError(f"{key.path} of {key.scope} is being put again and again: stop its owner, then purge again")

    async def _committed(self, scope: Scope, ended: Mapping[str, LoggedFile]) -> None:
        """Wait until the outlines show the last states."""
        while True:
            view = await self._manifest.view(scope)
            outlines = {path: find(view.outlines, path) for path in ended}
            if all(shown is not None and shown.revision >= ended[path].revision for path, shown in outlines.items()):
                return
            await self._manifest.wait(scope, view.sequence, _LOOK_AGAIN)

    async def _erase(self, scope: Scope, ended: Mapping[str, LoggedFile], path: str | None) -> list[PurgedFile]:
        counts = []
        for store in self._stores:
            found = await self._leftovers(store, scope, ended, path)
            ids = list(found)
            for begin in range(0, len(ids), _BATCH):
                await store.delete(scope, ids[begin : begin + _BATCH])
            counts.append(Counter(found.values()))
        vectors, texts = counts
        return [PurgedFile(scope, each, vectors[each], texts[each]) for each in ended]

    async def _leftovers(
        self, store: ChunkStore, scope: Scope, ended: Iterable[str], path: str | None
    ) -> dict[str, str]:
        """List the chunks, with their paths, that no outline lists and no indexer can be about to list."""
        outlines, purged = (await self._manifest.view(scope)).outlines, set(ended)
        found: dict[str, str] = {}
        async for page in store.scan(scope, path):
            for chunk in page:
                outline = find(outlines, chunk.path)
                if chunk.path in purged and outline is not None and outline.collectable(chunk):
                    found[chunk.id] = chunk.path
        return found

    async def _is_clean(self, scope: Scope, ended: Mapping[str, LoggedFile], path: str | None) -> bool:
        """Read everything once more: nothing born before the end is left, not even listed by a file that came back."""
        for store in self._stores:
            async for page in store.scan(scope, path):
                if any(chunk.path in ended and chunk.birth <= ended[chunk.path].revision for chunk in page):
                    return False
        for each, last in ended.items():
            logged = await self._log.get(FileKey(scope, each))
            outline = await self._manifest.outline(FileKey(scope, each))
            if logged is None or outline is None:
                return False
            if logged.revision == last.revision and (logged.state.content is not None or outline.chunks):
                return False
        return True


def _deletion(key: FileKey) -> FileState:
    return FileState.deletion(key, time.time())


def _is_blocked(logged: LoggedFile) -> bool:
    return logged.state.problem is not None and logged.state.problem.reason == BLOCKED


def _name(order: PurgeOrder) -> str:
    return "/".join(part for part in (order.tenant, order.workspace, order.path) if part)
