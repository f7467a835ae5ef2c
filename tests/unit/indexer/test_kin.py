"""Which generations share vectors, and what it costs where one of them does not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from memoryd.domain.chunks import Chunk, text_hash
from memoryd.domain.files import FileKey, Revision, Source
from memoryd.domain.generations import VERSIONS, Generation
from memoryd.domain.names import Scope
from memoryd.domain.queries import ModelInfo
from memoryd.errors import UnavailableError
from memoryd.generations.parts import Parts
from memoryd.ports import EmbeddedChunk, Embedding
from services.indexer.jobs import vector_key
from services.indexer.kin import Kin
from services.indexer.metrics import default_metrics
from services.indexer.settings import IndexerSettings
from services.indexer.vectors import Vectorizer
from tests.support.fakes import FakeEmbedder, MemoryManifest, MemoryTextStore, MemoryVectorStore, vector_of

MODEL = ModelInfo("small", "f1", 4, 128, unrelated=0.1, related=0.7, engine="onnx", sketches=True)


def parts(name: str, model: ModelInfo = MODEL, **versions: str) -> Parts:
    generation = Generation(name, model, 0.0, versions={**VERSIONS, **versions})
    return Parts(generation, FakeEmbedder(), MemoryManifest(), MemoryVectorStore(), MemoryTextStore(), name)


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (parts("other", chunker="next", analyzer="next", redaction="next"), True),
        (parts("other", sketch="next"), False),
        (parts("other", replace(MODEL, fingerprint="f2")), False),
        (parts("other", replace(MODEL, sketches=False)), False),
    ],
)
def test_generations_that_make_the_same_of_a_text_are_kin_while_both_are_open(other: Parts, alike: bool) -> None:
    kin, mine = Kin(), parts("mine")
    with kin.member(mine) as others:
        assert others() == []
        with kin.member(other) as back:
            assert (others(), back()) == (([other.vectors], [mine.vectors]) if alike else ([], []))
        assert others() == []


def chunk(text: str, tenant: str = "acme") -> Chunk:
    key = FileKey(Scope(tenant, "main"), "a.md")
    return Chunk(text, key, text, "", Source.MEMORY, False, "", (), Revision(1, 1), text_hash(text), text, "")


class Silent(MemoryVectorStore):
    """Does not answer."""

    async def embeddings(self, tenant: str, text_hashes: Sequence[str]) -> Mapping[str, Embedding]:
        raise UnavailableError("it is away")


async def test_vectors_are_found_in_another_store_of_the_tenant_and_without_the_one_that_is_away() -> None:
    own, other = MemoryVectorStore(), MemoryVectorStore()
    await other.upsert([EmbeddedChunk(chunk("ferry"), vector_of("ferry"), b"sketch")])
    vectorizer = Vectorizer(
        own, FakeEmbedder(), IndexerSettings(), default_metrics(), lambda: [Silent(), other, Silent()]
    )
    found = await vectorizer.find([chunk("ferry"), chunk("kiln"), chunk("ferry", "rival")])
    assert {key: each.sketch for key, each in found.items()} == {vector_key(chunk("ferry")): b"sketch"}
