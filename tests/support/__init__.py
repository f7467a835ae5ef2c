"""What several tests share: fakes behind ports, builders, helpers."""
