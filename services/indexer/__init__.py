"""The indexer keeps both stores and the outlines equal to the file log, and collects what no outline lists."""
