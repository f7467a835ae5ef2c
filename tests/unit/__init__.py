"""Tests of pure code and of use cases, without a server."""
