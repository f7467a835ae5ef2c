"""Adapters on engines that run inside the process: SQLite, Tantivy, qdrant-edge, the folder itself."""
