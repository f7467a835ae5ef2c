"""Between messages and domain values: what the services' rpc modules and the gRPC adapters share."""
