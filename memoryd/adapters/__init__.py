"""Adapters: one implementation of a port each, on a real engine."""
