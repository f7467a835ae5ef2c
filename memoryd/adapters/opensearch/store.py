"""The text store on OpenSearch."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Container, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import RequestError
from opensearchpy.helpers import async_bulk

from memoryd.adapters.opensearch.connection import connect, failure, translated
from memoryd.adapters.opensearch.documents import (
    chunk_id,
    document_key,
    index_body,
    named_query,
    scan_query,
    search_query,
    to_document,
)
from memoryd.adapters.opensearch.settings import OpenSearchSettings
from memoryd.adapters.payloads import CHUNK_FIELDS, REF_FIELDS, to_chunk, to_ref
from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.names import Scope
from memoryd.errors import InvalidInputError
from memoryd.ports import Filter, QueryTerm

_PAGE = 1_000
_BATCH = 500
_BATCH_BYTES = 5 << 20
# An item is refused where the server's queue is full; each try waits twice as long as the one before.
_REFUSALS = 3
_FIRST_WAIT = (0.1, 0.3)
# Half an answer would look like a whole one.
_WHOLE = {"ignore_unavailable": True, "allow_partial_search_results": False}
# Both from columns: what a document stores is neither unpacked nor written out, which takes longer than the search.
_KEYS_ONLY = {"_source": False, "stored_fields": "_none_", "docvalue_fields": ["key", "path"]}


class OpenSearchTextStore:
    """The port `TextStore`, on one index for each tenant, or one for all.

    An index is written to by an alias, which only its creation makes: were it lost, a write would else make one anew
    that guesses how fields are to be searched.
    """

    def __init__(self, client: AsyncOpenSearch, name: str, settings: OpenSearchSettings) -> None:
        self._client = client
        self._name = name
        self._settings = settings
        # Not made again by a write where one is lost: that it fails is the sign that older chunks are missing.
        self._made: set[str] = set()

    @classmethod
    async def open(cls, settings: OpenSearchSettings, name: str) -> OpenSearchTextStore:
        """Connect; indexes are created when they are first written to, by several processes at once if need be.

        Args:
            settings: how to reach OpenSearch.
            name: the generation's own, that its indexes' names begin with; lower case, without a dot.
        """
        client = connect(settings)
        try:
            with translated(settings):
                await client.info()
        except BaseException:
            await client.close()
            raise
        return cls(client, name, settings)

    async def upsert(self, chunks: Sequence[Chunk]) -> None:
        """Write chunks, of any scopes. On return they are durable and can be found.

        Raises InvalidInputError where one is refused for its content; the others are written.
        """
        for alias in {self._alias(chunk.key.scope): None for chunk in chunks}:
            await self._make(alias)
        await self._bulk(
            {
                "_op_type": "index",
                "_index": self._alias(chunk.key.scope),
                "_id": document_key(chunk.key.scope, chunk.id),
                "_source": to_document(chunk),
            }
            for chunk in chunks
        )

    async def ensure(self) -> None:
        """Make lost indexes again, when they are next written to."""
        self._made.clear()

    async def delete(self, scope: Scope, ids: Sequence[str]) -> None:
        """Remove chunks; ids that are not there are no error."""
        alias = self._alias(scope)
        await self._bulk({"_op_type": "delete", "_index": alias, "_id": document_key(scope, each)} for each in ids)

    async def search(self, terms: Sequence[QueryTerm], where: Filter, limit: int) -> Sequence[tuple[str, float]]:
        """Rank the chunks that hold any of the terms by BM25: ids and scores, best first. No terms find nothing."""
        if not terms:
            return []
        found = await self._search(where.scope, {"query": search_query(terms, where), "size": limit, **_KEYS_ONLY})
        ranked = sorted((-hit["_score"], *hit["fields"]["path"], *hit["fields"]["key"]) for hit in found)
        return [(chunk_id(key), -score) for score, _, key in ranked]

    async def chunks(self, scope: Scope, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """Read chunks by id; those that are not there are left out."""
        found: dict[str, Chunk] = {}
        for start in range(0, len(ids), _PAGE):
            query = named_query(scope, ids[start : start + _PAGE])
            for hit in await self._search(scope, {"query": query, "size": _PAGE, "_source": CHUNK_FIELDS}):
                name = chunk_id(hit["_id"])
                found[name] = to_chunk(name, hit["_source"])
        return found

    async def scan(
        self,
        scope: Scope,
        path: str | None = None,
        *,
        known: Container[str] | None = None,  # noqa: ARG002  (all of it is at hand)
    ) -> AsyncIterator[Sequence[ChunkRef]]:
        """Iterate in pages over all stored chunks of a workspace, or of one file, in the order of their keys.

        Each page asks for what comes after the last key: what is there all along comes once, whatever is written
        meanwhile, and no snapshot has to be held open.
        """
        body: dict[str, Any] = {
            "query": scan_query(scope, path),
            "size": _PAGE,
            "sort": ["key"],
            "_source": REF_FIELDS,
        }
        while hits := await self._search(scope, body):
            yield [to_ref(chunk_id(hit["_id"]), hit["_source"]) for hit in hits]
            if len(hits) < _PAGE:
                return
            body["search_after"] = hits[-1]["sort"]

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()

    def _alias(self, scope: Scope) -> str:
        return f"{self._name}.{scope.tenant}" if self._settings.index_per_tenant else self._name

    async def _make(self, alias: str) -> None:
        """Create an index where there is none."""
        if alias in self._made:
            return
        with translated(self._settings):
            try:
                await self._client.indices.create(index=f"{alias}.index", body=index_body(alias, self._settings))
            except RequestError as error:
                if error.error != "resource_already_exists_exception":
                    raise
        self._made.add(alias)

    async def _search(self, scope: Scope, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        with translated(self._settings):
            answer = await self._client.search(
                index=self._alias(scope), body={**body, "track_total_hits": False}, **_WHOLE
            )
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

    async def _bulk(self, actions: Iterable[dict[str, Any]]) -> None:
        with translated(self._settings):
            _, errors = await async_bulk(
                self._client,
                actions,
                chunk_size=_BATCH,
                max_chunk_bytes=_BATCH_BYTES,
                max_retries=_REFUSALS,
                initial_backoff=random.uniform(*_FIRST_WAIT),  # noqa: S311  (jitter)
                raise_on_error=False,
                refresh="wait_for",
                require_alias=True,
            )
        for error in errors if isinstance(errors, list) else ():  # a number with stats_only alone
            ((operation, item),) = error.items()
            if item["status"] == HTTPStatus.BAD_REQUEST:
                raise InvalidInputError(f"OpenSearch refuses chunk {item['_id']} for its content: its log says why")
            if operation != "delete" or item["status"] != HTTPStatus.NOT_FOUND:
                raise failure(self._settings, item["status"])


async def drop_indexes(settings: OpenSearchSettings, name: str) -> None:
    """Remove all indexes whose names begin with a generation's; nothing where there is none."""
    client = connect(settings)
    try:
        with translated(settings):
            # By their names: a server may refuse to delete by pattern.
            found = await client.indices.get(index=f"{name}.*", allow_no_indices=True)
            for index in found:
                await client.indices.delete(index=index, ignore_unavailable=True)
    finally:
        await client.close()
