"""The parts of one generation, as one bundle."""

from __future__ import annotations

from dataclasses import dataclass

from memoryd.domain.generations import Generation
from memoryd.ports import Embedder, Manifest, TextStore, VectorStore


@dataclass(frozen=True, slots=True)
class Parts:
    """What belongs to one generation and to no other.

    Attributes:
        generation: its record, as it was when this was opened.
        embedder: its model; one that is away now says so in each call.
        manifest: its outlines.
        vectors: its vectors.
        texts: its texts.
        consumer: its durable consumer of the file log.
    """

    generation: Generation
    embedder: Embedder
    manifest: Manifest
    vectors: VectorStore
    texts: TextStore
    consumer: str
