"""The gateway: keys, bounds, excerpts, use cases and their gRPC form."""
