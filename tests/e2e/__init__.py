"""Tests of the whole product through its public interface."""
