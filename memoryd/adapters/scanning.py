"""Scans of a vector store's chunks, the same on every engine that gives its records in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Container, Sequence
from typing import Any, TypeVar

from memoryd.adapters.payloads import REF_FIELDS, to_ref
from memoryd.domain.chunks import ChunkRef
from memoryd.domain.files import Revision

W = TypeVar("W")


async def refs(
    scroll: Callable[[W, list[str]], AsyncIterator[Sequence[Any]]],
    where: W,
    within: Callable[[Sequence[str]], W],
    known: Container[str] | None,
) -> AsyncIterator[Sequence[ChunkRef]]:
    """Iterate in pages over the chunks that pass a filter.

    Of chunks whose ids are `known`, only the id is read. What is stored beside it is 10 KB with a sketch, and a scan
    would bring all of it into memory.

    Args:
        scroll: gives the engine's records that pass a filter, with some of their fields, in pages.
        where: the engine's filter.
        within: makes the filter of ids.
        known: None where all are to be read.
    """
    async for page in scroll(where, REF_FIELDS if known is None else []):
        if known is None:
            yield _read(page)
            continue
        ids = [str(record.id) for record in page]
        unknown = [each for each in ids if each not in known]  # before the yield: it may change there
        yield [ChunkRef(each, "", Revision(0, 0)) for each in ids if each in known]
        if unknown:
            async for found in scroll(within(unknown), REF_FIELDS):
                yield _read(found)


def _read(page: Sequence[Any]) -> list[ChunkRef]:
    return [to_ref(str(record.id), record.payload or {}) for record in page]
