"""Tests of standalone."""
