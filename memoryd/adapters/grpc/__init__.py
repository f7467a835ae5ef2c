"""Services of the same deployment, reached over gRPC."""
