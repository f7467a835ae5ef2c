"""Comparing one folder with the file log."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from memoryd.domain.files import FileKey, Revision
from memoryd.domain.names import Scope
from memoryd.domain.paths import is_transcript
from memoryd.folder.listing import FoundFile, Listing, list_folder
from memoryd.folder.root import RootEmptyError
from memoryd.folder.rules import FolderRules
from memoryd.ports import FileLog
from services.workspace.budget import LiveBudget
from services.workspace.growth import Growth
from services.workspace.observe import observe, observe_unlisted
from services.workspace.parallel import total
from services.workspace.publish import Publisher
from services.workspace.settings import WorkspaceServiceSettings

_OWN = ""  # names the workspace's own folder among its folders


class Reconciler:
    """Brings what the file log holds of one workspace in line with its folder.

    Every change goes this way, whatever told of it: listing a folder is cheap (its files are not read), and finds
    renames, moved folders and lost events alike. Files whose status is as it was are not read again. One call at a
    time.

    Attributes:
        unfinished: whether the last call ended early.
    """

    def __init__(
        self,
        scope: Scope,
        root: Path,
        log: FileLog,
        settings: WorkspaceServiceSettings,
        rules: FolderRules | None = None,
    ) -> None:
        """Take a workspace: its name, its own folder, and what is read of it, if not what the settings say."""
        self.scope = scope
        self.root = root
        self._rules = rules or settings.rules
        self._growth = Growth(settings.session_delta_bytes, settings.session_delta_messages)
        self._budget = LiveBudget(settings.live_limit)
        self._parallel = settings.parallel_files
        self._publisher = Publisher(scope, log)
        self._folders: dict[str, tuple[int, int]] = {}  # which ones were listed last: "" is the workspace's own
        self._seen: dict[str, tuple[FoundFile, Revision | None]] = {}  # as it was when that revision was put
        self._everything = False  # transcripts that have grown little included
        self.unfinished = False

    def forget(self) -> None:
        """Read every file the next time."""
        self._seen.clear()

    async def reconcile(
        self,
        touched: frozenset[str] = frozenset(),
        *,
        reload: bool,
        live: bool,
        pressing: Callable[[], bool] = lambda: False,
    ) -> int:
        """Put what differs and return how many states were put.

        Reads the files that are new, in `touched`, or have another status; a few at a time. What is live comes first,
        and new files before deletions, so that a renamed file's text is never gone. Raises RootMissingError and puts
        nothing where the folder can't be listed, and what the file log raises.

        Args:
            touched: paths known to have changed.
            reload: read the log's states first, instead of trusting that only this object changes them.
            live: somebody is editing; without effect where too much has changed, see `LiveBudget`.
            pressing: whether something else has changed meanwhile that should not wait for all of this. Then it ends
                early and is `unfinished`: the next call goes on with what is left.
        """
        listing = await asyncio.to_thread(list_folder, self.root, self._rules)
        if reload:
            await self._publisher.load()
        known = frozenset(self._publisher.present())
        listing = await self._doubted(listing, known)
        changed = [found for path, found in listing.files.items() if path in touched or not self._unchanged(found)]
        self._everything = reload or (self.unfinished and self._everything)
        if not self._everything:
            changed = await asyncio.to_thread(self._due, changed, known)
        self._growth.keep(listing.files.values())
        missing = [path for path in known if path not in listing.files]
        news = [found for found in changed if not touched or _covers(touched, found.path)]  # the rest is from before
        edits = sum(found.path in known for found in news)
        live_edits, live_others = (
            self._budget.grant(edits, len(news) - edits + len(missing)) if live else (False, False)
        )
        urgent = [found for found in news if (live_edits if found.path in known else live_others)]
        ahead = {found.path for found in urgent}
        bulk = [found for found in changed if found.path not in ahead]
        put_found = partial(self._put_found, listing=listing)
        put = await total(urgent, partial(put_found, live=True), self._parallel)
        begun = _Counted(bulk, pressing)
        put += await total(begun, partial(put_found, live=False), self._parallel)
        self.unfinished = begun.count < len(bulk)
        if self.unfinished:
            return put
        put_missing = partial(self._put_missing, listing=listing, live=live_others)
        return put + await total(missing, put_missing, self._parallel)

    async def _doubted(self, listing: Listing, known: AbstractSet[str]) -> Listing:
        """Doubt an empty folder that stands in for a full one, as a volume that is not mounted does.

        A folder that was seen full and then empty was emptied. One that is empty when it is first seen may be another
        one, and deletions can't be taken back: they wait for a sign. Raises RootEmptyError where it is the workspace's
        own; a further one counts as unreadable.
        """
        emptied: list[str] = []
        for extra in self._rules.extras:
            of_it = sum(extra.below(path) is not None for path in known)
            known = {path for path in known if extra.below(path) is None}
            identity = listing.extras.get(extra.name)
            if identity is not None and await self._is_emptied(extra.root, extra.name, identity, of_it):
                emptied.append(extra.name)
        if await self._is_emptied(self.root, _OWN, listing.root, len(known)):
            raise RootEmptyError(f"is empty, but {len(known)} of its files are known")
        self._folders = {_OWN: listing.root} | {
            name: identity for name, identity in listing.extras.items() if name not in emptied
        }
        return listing.without(emptied)

    async def _is_emptied(self, root: Path, name: str, identity: tuple[int, int], known: int) -> bool:
        return known > 0 and self._folders.get(name) != identity and not await asyncio.to_thread(_holds, root)

    def _due(self, changed: list[FoundFile], known: AbstractSet[str]) -> list[FoundFile]:
        """Leave out the transcripts that have grown too little to be taken again. Blocks."""
        return [
            found
            for found in changed
            if not is_transcript(found.path) or self._growth.is_due(found, known=found.path in known)
        ]

    def _unchanged(self, found: FoundFile) -> bool:
        return self._seen.get(found.path) == (found, self._publisher.revision(found.path))

    async def _put_found(self, found: FoundFile, *, listing: Listing, live: bool) -> bool:
        key = FileKey(self.scope, found.path)
        self._seen.pop(found.path, None)
        put, observed = await self._publisher.put(
            found.path, lambda: asyncio.to_thread(observe, self.root, key, listing, self._rules), live=live
        )
        if is_transcript(found.path):
            self._growth.took(found)
        if observed is not None and observed.signature is not None:
            self._seen[found.path] = replace(found, signature=observed.signature), self._publisher.revision(found.path)
        return put

    async def _put_missing(self, path: str, *, listing: Listing, live: bool) -> bool:
        key = FileKey(self.scope, path)
        self._seen.pop(path, None)
        put, _ = await self._publisher.put(
            path, lambda: asyncio.to_thread(observe_unlisted, self.root, key, listing, self._rules), live=live
        )
        return put


class _Counted:
    """Iterates over items until something is pressing, and counts those that it gave."""

    def __init__(self, items: Sequence[FoundFile], pressing: Callable[[], bool]) -> None:
        self._items, self._pressing = items, pressing
        self.count = 0

    def __iter__(self) -> Iterator[FoundFile]:
        for item in self._items:
            if self._pressing():
                return
            self.count += 1
            yield item


def _covers(touched: AbstractSet[str], path: str) -> bool:
    """Whether a path, or a folder that it is in, is known to have changed."""
    return path in touched or any(str(parent) in touched for parent in PurePosixPath(path).parents)


def _holds(root: Path) -> bool:
    """Whether there is anything in a folder, be it of the workspace or not."""
    with os.scandir(root) as entries:
        return next(entries, None) is not None
