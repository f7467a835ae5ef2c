"""Tests of the gRPC adapters, against real servers."""
