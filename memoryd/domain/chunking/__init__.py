"""Cuts Markdown files and transcripts into pieces that fit the embedding model's window."""

from memoryd.domain.chunking.chunker import CHUNKER_VERSION, Chunked, chunk_markdown
from memoryd.domain.chunking.limits import Limits
from memoryd.domain.chunking.transcripts import chunk_transcript
from memoryd.domain.markdown.front_matter import FrontMatter

__all__ = ["CHUNKER_VERSION", "Chunked", "FrontMatter", "Limits", "chunk_markdown", "chunk_transcript"]
