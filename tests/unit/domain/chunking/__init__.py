"""Tests of the chunker, the Markdown reader, snippets and citations."""
