"""The gRPC server: lifecycle, what happens around a call, logs and metrics."""
