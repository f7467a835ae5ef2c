"""Tests of the embedder."""
