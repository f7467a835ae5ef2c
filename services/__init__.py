"""The services: one folder each, with its use cases, its gRPC face and its composition root."""
