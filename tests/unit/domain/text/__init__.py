"""Tests of text analysis."""
