"""The record of an outline, as both manifests keep it."""

from __future__ import annotations

import orjson

from memoryd.domain.files import FileKey, Problem, Revision, Source
from memoryd.domain.outlines import Listed, Outline


def encode_outline(outline: Outline) -> bytes:
    """Write an outline without its key, revision and entry, which the manifests keep beside it."""
    problem = outline.problem
    return orjson.dumps(
        {
            "hash": outline.file_hash,
            "source": outline.source,
            "private": outline.private,
            "date": outline.date,
            "evergreen": outline.evergreen,
            "deleted": outline.deleted,
            "problem": problem and [problem.reason, problem.detail],
            "warning": outline.warning,
            "chunks": [[c.id, c.identity, c.ordinal, c.start_line, c.end_line] for c in outline.chunks],
        }
    )


def decode_outline(key: FileKey, revision: Revision, entry: int, body: bytes) -> Outline:
    """Read what `encode_outline` wrote."""
    fields = orjson.loads(body)
    return Outline(
        key=key,
        revision=revision,
        file_hash=fields["hash"],
        chunks=tuple(Listed(*chunk) for chunk in fields["chunks"]),
        source=Source(fields["source"]),
        private=fields["private"],
        date=fields["date"],
        evergreen=fields["evergreen"],
        deleted=fields["deleted"],
        problem=Problem(*fields["problem"]) if fields["problem"] else None,
        entry=entry,
        warning=fields.get("warning", ""),
    )
