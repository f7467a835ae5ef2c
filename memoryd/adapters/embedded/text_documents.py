"""How chunks, filters and terms look to Tantivy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import orjson
from tantivy import Document, FieldType, Occur, Query, Schema, SchemaBuilder

from memoryd.domain.chunks import Chunk, ChunkRef
from memoryd.domain.files import FileKey, Revision, Source
from memoryd.domain.names import Scope
from memoryd.domain.text import FIELD_BOOSTS
from memoryd.ports import Filter, QueryTerm

_UNDATED = 0
_LAST_DAY = 9999_12_31


def _build_schema() -> Schema:
    builder = SchemaBuilder()
    for name in ("key", "workspace", "source", "path", "tags"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in FIELD_BOOSTS:
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    builder.add_unsigned_field("date", indexed=True, fast=True)
    builder.add_boolean_field("private", indexed=True)
    builder.add_bytes_field("chunk", stored=True)
    return builder.build()


SCHEMA = _build_schema()


def chunk_key(workspace: str, chunk_id: str) -> str:
    """Name a chunk within its tenant's index."""
    return f"{workspace}/{chunk_id}"


def to_document(chunk: Chunk) -> Document:
    """Make the document of a chunk: all of it is stored, packed in one field."""
    stored = [
        chunk.id,
        chunk.key.path,
        chunk.birth.epoch,
        chunk.birth.sequence,
        chunk.text,
        chunk.breadcrumb,
        chunk.source,
        chunk.private,
        chunk.date,
        chunk.tags,
        chunk.text_hash,
        chunk.terms,
        chunk.heading_terms,
    ]
    fields = {
        "key": chunk_key(chunk.key.scope.workspace, chunk.id),
        "workspace": chunk.key.scope.workspace,
        "source": chunk.source.value,
        "path": chunk.key.path,
        "tags": list(chunk.tags),
        "body": chunk.terms,
        "heading": chunk.heading_terms,
        "date": _day(chunk.date) if chunk.date else _UNDATED,
        "private": chunk.private,
        "chunk": orjson.dumps(stored),
    }
    return Document.from_dict(fields, SCHEMA)


def to_chunk(document: Document, scope: Scope) -> Chunk:
    """Read the chunk of a document back."""
    chunk_id, path, epoch, sequence, text, breadcrumb, source, private, date, tags, text_hash, terms, heading_terms = (
        orjson.loads(document["chunk"][0])
    )
    return Chunk(
        id=chunk_id,
        key=FileKey(scope, path),
        text=text,
        breadcrumb=breadcrumb,
        source=Source(source),
        private=private,
        date=date,
        tags=tuple(tags),
        birth=Revision(epoch, sequence),
        text_hash=text_hash,
        terms=terms,
        heading_terms=heading_terms,
    )


def to_name(document: Document) -> tuple[str, str]:
    """Read of a document what a search needs: the chunk's path and id."""
    chunk_id, path, *_ = orjson.loads(document["chunk"][0])
    return path, chunk_id


def to_ref(document: Document) -> ChunkRef:
    """Read of a document what the sweeper needs."""
    chunk_id, path, epoch, sequence, *_ = orjson.loads(document["chunk"][0])
    return ChunkRef(chunk_id, path, Revision(epoch, sequence))


def search_query(terms: Sequence[QueryTerm], where: Filter) -> Query:
    """Ask for chunks that hold any of the terms and pass the filter.

    The score is the sum over terms and fields of BM25 × weight × boost; the filter adds nothing to it.
    """
    weights: dict[str, float] = {}
    for term in terms:
        weights[term.term] = weights.get(term.term, 0.0) + term.weight
    clauses = [
        (Occur.Should, Query.boost_query(Query.term_query(SCHEMA, field, term, "freq"), weight * boost))
        for term, weight in weights.items()
        for field, boost in FIELD_BOOSTS.items()
    ]
    filters = [(Occur.Must, Query.const_score_query(query, 0.0)) for query in _filters(where)]
    return Query.boolean_query([*filters, (Occur.Must, Query.boolean_query(clauses))])


def scan_query(workspace: str, path: str | None) -> Query:
    """Ask for all chunks of a workspace, or of one of its files."""
    queries = [_exactly("workspace", workspace)] + ([] if path is None else [_exactly("path", path)])
    return Query.boolean_query([(Occur.Must, Query.const_score_query(query, 0.0)) for query in queries])


def named_query(workspace: str, ids: Iterable[str]) -> Query:
    """Ask for chunks of a workspace by id."""
    return Query.term_set_query(SCHEMA, "key", [chunk_key(workspace, each) for each in ids])


def _filters(where: Filter) -> Iterator[Query]:
    yield _exactly("workspace", where.scope.workspace)
    if where.sources != frozenset(Source):
        yield Query.term_set_query(SCHEMA, "source", [source.value for source in where.sources])
    if where.path_prefix:
        # Distance 0: the prefix exactly. A regular expression does the same, but has characters to escape and a limit.
        yield Query.fuzzy_term_query(SCHEMA, "path", where.path_prefix, distance=0, prefix=True)
    if not where.include_private:
        yield Query.term_query(SCHEMA, "private", field_value=False)
    for tag in sorted(where.tags):
        yield _exactly("tags", tag)
    if where.paths is not None:
        yield Query.term_set_query(SCHEMA, "path", sorted(where.paths))
    if where.ids is not None:
        yield named_query(where.scope.workspace, where.ids)
    if where.since or where.until:
        first = _day(where.since) if where.since else _UNDATED
        last = _day(where.until) if where.until else _LAST_DAY
        dated = Query.range_query(SCHEMA, "date", FieldType.Unsigned, first, last)
        undated = Query.term_query(SCHEMA, "date", _UNDATED)
        yield Query.boolean_query([(Occur.Should, dated), (Occur.Should, undated)])


def _exactly(field: str, value: str) -> Query:
    return Query.term_query(SCHEMA, field, value, "basic")


def _day(date: str) -> int:
    """A date as a number that sorts like it: 2026-03-31 is 20260331."""
    return int(date.replace("-", ""))
