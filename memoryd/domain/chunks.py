"""Chunks: immutable runs of lines, named by what they hold and by the revision that first wrote them."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field

from memoryd.domain.files import FileKey, Revision, Source

RECORD_VERSION = "2"
"""Raise it with every change of the fields that the stores keep of a chunk: a part of a generation's name."""

# Not a secret: it only sets chunk ids apart from other UUIDs made from the same bytes.
_NAMESPACE = uuid.UUID("6a3f1c0e-9d0b-5c59-8a57-6d656d6f7279")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of lines as the chunker cuts it, before it has an id.

    Attributes:
        text: the lines, joined by newlines, without the last line end.
        breadcrumb: the headings above, outermost first, joined by " > ".
        start_line: first line, 1-based, of the file.
        end_line: last line, inclusive. Equal to `start_line` where a line was too long and was cut.
        date: YYYY-MM-DD where these lines have a date of their own, as a transcript's have; else empty.
    """

    text: str
    breadcrumb: str
    start_line: int
    end_line: int
    date: str = ""

    @property
    def embedding_input(self) -> str:
        """The exact text that is embedded: the breadcrumb gives a short chunk its subject."""
        return embedding_input(self.breadcrumb, self.text)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk as both stores hold it. Its id is derived from all other stored fields but `terms` and `heading_terms`.

    Attributes:
        id: UUID, derived: see `chunk_id`.
        key: the file.
        text: the lines of the chunk.
        breadcrumb: the headings above.
        source: where the file belongs.
        private: withheld in chats that are not direct.
        date: YYYY-MM-DD where the lines themselves, the path or the front matter give one, else empty (a modification
            time would give every chunk of an edited file a new id; it is kept in the outline instead).
        tags: from front matter, sorted.
        birth: the file revision that first wrote the chunk.
        text_hash: hash of the exact embedding input, to find its vector again.
        terms: `text` after analysis, joined by spaces.
        heading_terms: breadcrumb, file name and path after analysis, joined by spaces.
    """

    id: str
    key: FileKey
    text: str
    breadcrumb: str
    source: Source
    private: bool
    date: str
    tags: tuple[str, ...]
    birth: Revision
    text_hash: str
    terms: str = field(compare=False)
    heading_terms: str = field(compare=False)

    @property
    def embedding_input(self) -> str:
        """The exact text that is embedded, the same as the piece's."""
        return embedding_input(self.breadcrumb, self.text)


@dataclass(frozen=True, slots=True)
class ChunkRef:
    """What the sweeper needs to know of a stored chunk."""

    id: str
    path: str
    birth: Revision


def embedding_input(breadcrumb: str, text: str) -> str:
    """Join what is embedded of a chunk."""
    return f"{breadcrumb}\n{text}" if breadcrumb else text


def text_hash(exact_input: str) -> str:
    """Hash of an exact embedding input: 128 bits, hex."""
    return hashlib.blake2b(exact_input.encode(), digest_size=16).hexdigest()


def chunk_identity(
    *,
    key: FileKey,
    text: str,
    breadcrumb: str,
    source: Source,
    private: bool,
    date: str,
    tags: tuple[str, ...],
) -> str:
    """Hash of all that a chunk stores but its birth and its place: equal pieces of one file differ by ordinal only."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (key.scope.tenant, key.scope.workspace, key.path, text, breadcrumb, source, str(private), date, *tags):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def chunk_id(identity: str, ordinal: int, birth: Revision) -> str:
    """Derive a chunk's id, a UUID.

    The birth revision is part of it, so an id never comes back: a late delete can't hit a live chunk, and an indexer
    that tries again writes the same ids.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{identity}:{ordinal}:{birth.token}"))
