"""Tests of the mapping between messages and domain values."""
