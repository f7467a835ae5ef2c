"""From a scored candidate to a result that a caller reads."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from memoryd.domain.citations import citation
from memoryd.domain.queries import SearchResult
from memoryd.domain.scores import Scored
from memoryd.domain.snippets import snippet
from memoryd.domain.text import analyze


def once(scored: Sequence[Scored]) -> list[Scored]:
    """Keep the first of those with the very same lines: parts of one long line would be cited alike."""
    first: dict[tuple[str, int, int], Scored] = {}
    for item in scored:
        listed = item.candidate.listed
        first.setdefault((item.candidate.chunk.key.path, listed.start_line, listed.end_line), item)
    return list(first.values())


def result(scored: Scored, terms: AbstractSet[str], *, cited: bool, explain: bool) -> SearchResult:
    """Build a result: lines and flags from the outline, text from the chunk."""
    chunk, outline, listed = scored.candidate.chunk, scored.candidate.outline, scored.candidate.listed
    path = chunk.key.path
    return SearchResult(
        path=path,
        start_line=listed.start_line,
        end_line=listed.end_line,
        score=scored.score,
        vector_score=scored.vector_score,
        text_score=scored.text_score,
        rerank_score=scored.rerank_score,
        snippet=snippet(chunk.text, lambda line: set(analyze(line)), set(terms)),
        source=outline.source,
        citation=citation(path, listed.start_line, listed.end_line) if cited else "",
        file_hash=outline.file_hash,
        heading=chunk.breadcrumb,
        revision=outline.revision,
        explanation=scored.explanation() if explain else (),
        stale=outline.problem is not None,
    )
