"""Tests of the life of generations."""
