"""Transcripts: what is kept of them, and what must not be."""
