"""The embedder over gRPC beside the raw engine in a loop, on the same texts, in the same run."""
