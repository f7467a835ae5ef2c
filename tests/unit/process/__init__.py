"""Tests of what every process shares."""
