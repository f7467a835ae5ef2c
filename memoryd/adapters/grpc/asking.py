"""Embed calls as messages: what is asked of each part of the texts, and what is read from its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoryd.domain.sketches import QueryTokens
from memoryd.ports import Embeddings, Lane, TextKind
from memoryd.v1 import embedder_pb2
from memoryd.wire.enums import number

_KIND = embedder_pb2.EmbedRequest.Kind.DESCRIPTOR
_LANE = embedder_pb2.EmbedRequest.Lane.DESCRIPTOR


@dataclass(slots=True)
class Ask:
    """What is the same for all parts.

    Attributes:
        fingerprint: of the model; empty until the first answer where any will do. Later parts name that one: vectors of
            two models are never mixed.
        kind: what the texts are.
        lane: which queue.
        sketches: whether token sketches are wanted.
        tenant: whose texts they are.
    """

    fingerprint: str
    kind: TextKind
    lane: Lane
    sketches: bool
    tenant: str

    def request(self, texts: Sequence[str]) -> embedder_pb2.EmbedRequest:
        """Write down what is asked of these texts."""
        return embedder_pb2.EmbedRequest(
            fingerprint=self.fingerprint,
            texts=texts,
            kind=number(self.kind, _KIND),
            lane=number(self.lane, _LANE),
            sketches=self.sketches,
            tenant=self.tenant,
        )

    def read(self, response: embedder_pb2.EmbedResponse, texts: int) -> Embeddings:
        """Read the answer for so many texts. Raises ValueError where it is for more or fewer."""
        vectors = np.frombuffer(response.vectors, "<f4").astype(np.float32).reshape(texts, response.dimensions)
        self.fingerprint = response.fingerprint
        packed: Sequence[bytes] = ()
        tokens: Sequence[QueryTokens] = ()
        if self.sketches and self.kind is TextKind.PASSAGE:
            packed = _sketches(response, texts)
        elif self.sketches:
            tokens = _query_tokens(response, texts)
        return Embeddings(vectors, response.tokens, tuple(packed), tuple(tokens))


def joined(answers: Sequence[Embeddings]) -> Embeddings:
    """Put the answers of all parts together."""
    vectors: NDArray[np.float32] = np.concatenate([answer.vectors for answer in answers])
    return Embeddings(
        vectors,
        sum(answer.tokens for answer in answers),
        tuple(sketch for answer in answers for sketch in answer.sketches),
        tuple(tokens for answer in answers for tokens in answer.query_tokens),
    )


def _sketches(response: embedder_pb2.EmbedResponse, texts: int) -> Sequence[bytes]:
    """Read sketches. Raises ValueError where there are more or fewer, or one is not of whole tokens."""
    width = -(-response.dimensions // 8)
    if len(response.sketches) != texts or any(len(sketch) % width for sketch in response.sketches):
        raise ValueError(f"no {texts} sketches of {response.dimensions} dimensions")
    return response.sketches


def _query_tokens(response: embedder_pb2.EmbedResponse, texts: int) -> list[QueryTokens]:
    """Read queries' tokens. Raises ValueError where there are more or fewer, or their numbers don't fit together."""
    if len(response.query_tokens) not in {0, texts}:
        raise ValueError(f"tokens of {len(response.query_tokens)} queries instead of {texts}")
    found = []
    for each in response.query_tokens:
        rarity = np.frombuffer(each.rarity, "<f4").astype(np.float64)
        vectors = np.frombuffer(each.vectors, "<f4").astype(np.float32)
        found.append(QueryTokens(vectors.reshape(len(rarity), response.dimensions), rarity))
    return found
