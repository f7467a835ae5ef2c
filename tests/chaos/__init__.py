"""Kills the indexer again and again while files are edited, and counts what was lost, doubled or wrong."""
