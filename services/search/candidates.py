"""From two lists of hits to one list of candidates that says of each what both legs think of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memoryd.domain.names import Scope
from memoryd.domain.queries import Stage
from memoryd.domain.scores import Candidate
from memoryd.domain.text import QueryWord, coverage
from memoryd.errors import MemorydError
from memoryd.ports import Embedder, VectorStore
from services.search.legs import Found
from services.search.stages import Stages
from services.search.visibility import Visible

# Weight of a word while the tokenizer can't be asked: all words count the same.
_PLAIN_WEIGHT = 1.0


async def word_weights(embedder: Embedder, words: Sequence[QueryWord]) -> list[float]:
    """How much each word of the query counts, by its rarity; equal weights where the embedder does not answer."""
    try:
        tokenizer = await embedder.tokenizer()
    except MemorydError:
        return [_PLAIN_WEIGHT] * len(words)
    return tokenizer.weights([word.surface for word in words])


async def gather(
    scope: Scope,
    words: Sequence[QueryWord],
    weights: Sequence[float],
    visible: Visible,
    found: Found,
    vectors: VectorStore,
    stages: Stages,
) -> list[Candidate]:
    """Merge the legs' hits; a chunk that the vector leg knew nothing of is compared with the query's vector afterwards.

    So a chunk's score does not depend on which leg happened to find it. The share of the query that a chunk holds is
    looked up for the best text hit, whose score it is, and for the others where the query needs it.
    """
    cosines: dict[str, float | None] = {**found.cosines, **{hit.chunk.id: hit.score for hit in found.vector or ()}}
    bm25: Mapping[str, float] = {hit.chunk.id: hit.score for hit in found.text or ()}
    chunks = {hit.chunk.id: hit.chunk for hit in (*(found.vector or ()), *(found.text or ()), *found.more)}
    missing = [identifier for identifier in chunks if identifier not in cosines]
    embedding = found.embedding
    if missing and found.vector is not None and embedding is not None:
        more = await stages.run(
            Stage.VECTOR,
            lambda _: vectors.cosines(embedding, scope, missing),
            share=0.5,
            instead="chunks that only the text leg found count as unrelated by vector",
        )
        cosines.update(more or {})
    query = visible.query
    thorough = query.explain or query.decay_half_life_days is not None
    best = found.text[0].chunk.id if found.text else ""
    candidates = []
    for identifier, chunk in chunks.items():
        place = visible.place(chunk)
        if place is None:
            continue
        outline, listed = place
        text_ran = found.text is not None
        covered = text_ran and (thorough or identifier == best)
        candidates.append(
            Candidate(
                chunk=chunk,
                outline=outline,
                listed=listed,
                cosine=cosines.get(identifier),
                bm25=bm25.get(identifier, 0.0) if text_ran else None,
                coverage=_coverage(words, weights, chunk.terms, chunk.heading_terms) if covered else None,
            )
        )
    return candidates


def _coverage(words: Sequence[QueryWord], weights: Sequence[float], terms: str, heading_terms: str) -> float:
    return coverage(words, weights, {*terms.split(" "), *heading_terms.split(" ")})
