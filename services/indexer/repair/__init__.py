"""Repair: compares the file log, the outlines and both stores, and mends by the same rules as indexing."""
