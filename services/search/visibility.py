"""Which candidates may be returned: those that one fixed view of the outlines lists and the query's rules allow."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from memoryd.domain.chunks import Chunk
from memoryd.domain.files import Source
from memoryd.domain.globs import Glob
from memoryd.domain.names import Scope
from memoryd.domain.outlines import Listed, Outline, WorkspaceView
from memoryd.domain.queries import Chat, SearchQuery
from memoryd.ports import Filter, Hit

Place = tuple[str, int, int]
"""A path, and a chunk's first and last line in it."""


@dataclass(frozen=True)
class Visible:
    """A view of the outlines with a query's rules on top."""

    view: WorkspaceView
    query: SearchQuery

    @cached_property
    def ids(self) -> frozenset[str]:
        """All chunks that may be returned, but for a glob, tags and chunks' own dates, which the stores see to."""
        prefix = self.query.path_prefix
        return frozenset(
            listed.id
            for path, outline in self.view.outlines.items()
            # A transcript's chunks have dates of their own.
            if path.startswith(prefix)
            and self._shows(outline)
            and (outline.source is Source.SESSIONS or self._within(outline.date))
            for listed in outline.chunks
        )

    def place(self, chunk: Chunk) -> tuple[Outline, Listed] | None:
        """Find the outline that lists a chunk and may be shown; None drops the chunk."""
        name = chunk.key.path, chunk.id
        if name not in self._found:  # each leg and each stage asks for the same ones
            self._found[name] = self._find(chunk)
        return self._found[name]

    @cached_property
    def _found(self) -> dict[tuple[str, str], tuple[Outline, Listed] | None]:
        return {}

    def _find(self, chunk: Chunk) -> tuple[Outline, Listed] | None:
        outline = self.view.outlines.get(chunk.key.path)
        listed = outline.by_id.get(chunk.id) if outline else None
        if outline is None or listed is None or not self.allows(outline, chunk):
            return None
        return outline, listed

    def allows(self, outline: Outline, chunk: Chunk) -> bool:
        """Whether the query may see a chunk: flags come from the outline, and the date of one without its own."""
        return self._shows(outline) and self._within(chunk.date or outline.date)

    def places(self, hits: Iterable[Hit]) -> frozenset[Place]:
        """Name the lines that visible hits are of: the parts of one long line are one place."""
        found = ((hit.chunk.key.path, self.place(hit.chunk)) for hit in hits)
        return frozenset((path, place[1].start_line, place[1].end_line) for path, place in found if place)

    def elsewhere(self, places: AbstractSet[Place]) -> frozenset[str]:
        """All chunks of `ids` that are of other lines."""
        taken = {
            listed.id
            for path in {path for path, _, _ in places}
            for listed in self.view.outlines[path].chunks
            if (path, listed.start_line, listed.end_line) in places
        }
        return self.ids - taken

    def filter(self, hits: Iterable[Hit]) -> list[Hit]:
        """Keep the hits that may be returned, in their order."""
        return [hit for hit in hits if self.place(hit.chunk)]

    def _shows(self, outline: Outline) -> bool:
        query = self.query
        if outline.deleted or outline.source not in query.sources:
            return False
        return not outline.private or query.chat is Chat.DIRECT

    def _within(self, date: str) -> bool:
        query = self.query
        return date >= query.since and not (query.until and date > query.until)


async def index_filter(scope: Scope, visible: Visible) -> Filter:
    """What of a query's rules the stores can apply themselves; a glob becomes the paths that it stands for."""
    query = visible.query
    paths = await asyncio.to_thread(_matching, visible.view, query.glob) if query.glob else None
    return Filter(
        scope=scope,
        sources=query.sources,
        path_prefix=query.path_prefix,
        since=query.since,
        until=query.until,
        include_private=query.chat is Chat.DIRECT,
        tags=frozenset(query.tags),
        paths=paths,
    )


def _matching(view: WorkspaceView, glob: str) -> frozenset[str]:
    matches = Glob(glob).matches
    return frozenset(path for path, outline in view.outlines.items() if not outline.deleted and matches(path))
