"""The indexer's use cases, on ports in memory."""
