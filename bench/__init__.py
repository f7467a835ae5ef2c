"""Benchmarks: what the product costs beside the raw parts it is made of."""
