"""Tests of memoryd.models."""
